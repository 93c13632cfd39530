"""Contents of an item's page that concern its decision."""
