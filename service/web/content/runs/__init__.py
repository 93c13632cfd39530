"""Parts of the page of a run."""
