"""Operations that start runs, the same for API and pages."""
