"""People outside the desk, who decide one item by a link and a mailed code."""
