"""DynamoDB through Powertools' persistence layer, fenced."""
