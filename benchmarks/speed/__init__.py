"""From a decision to its tool: Sayso beside two floors and Restate, in interleaved rounds."""
