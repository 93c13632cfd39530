"""Fire drills: templates of false calls, planting them among a reviewer's items, and the test of the results."""
