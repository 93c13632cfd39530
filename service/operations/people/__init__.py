"""Operations of admins on people and keys, the same for API and pages."""
