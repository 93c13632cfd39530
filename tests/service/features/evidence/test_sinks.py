"""Requests to buckets carry the signature that the provider's own documentation computes."""

from datetime import UTC, datetime
from urllib.parse import urlsplit

from service.core.outgoing.buckets import sign_request
from service.features.evidence.sinks import Sink


def test_signature_is_that_of_the_providers_example() -> None:
    """The example "GET Bucket Lifecycle" of Amazon's documentation of Signature Version 4."""
    url = urlsplit("https://examplebucket.s3.amazonaws.com/?lifecycle=")
    credentials = urlsplit("s3+https://AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI%2FK7MDENG%2FbPxRfiCYEXAMPLEKEY@host/b")
    headers = sign_request("GET", url, credentials, b"", datetime(2013, 5, 24, tzinfo=UTC))
    signature = headers["Authorization"].rpartition("=")[2]
    assert signature == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"
    assert headers["x-amz-date"] == "20130524T000000Z"


def test_name_of_a_sink_has_no_credentials() -> None:
    assert Sink("s3+https://KEY:SECRET@host:9000/bucket/desk").name == "s3+https://host:9000/bucket/desk"
