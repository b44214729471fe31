"""What tests share. Modules here import the standard library and the domain only, unless their name says AWS."""
