"""Be what every value of the language is: strict about its fields, and never changed."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A value that refuses unknown fields and is replaced, not changed."""

    model_config = ConfigDict(frozen=True, extra="forbid")
