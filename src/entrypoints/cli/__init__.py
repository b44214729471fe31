"""The command line. Its libraries (typer, rich) are not installed with the Lambda bundle."""
