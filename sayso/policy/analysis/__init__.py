"""What rules do: why they decide a call as they do, and what other rules would have done."""
