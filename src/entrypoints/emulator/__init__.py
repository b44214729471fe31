"""AWS on this machine: the one launcher that tests, demo and local deployment share."""
