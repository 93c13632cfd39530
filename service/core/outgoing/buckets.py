"""Objects in a bucket with the interface of S3, by requests that the bucket's own credentials sign."""

import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from html import unescape
from urllib.parse import SplitResult, quote, unquote, urlsplit

from sayso.core.clock import now_ms
from sayso.errors import SaysoError, Unavailable
from service.core.outgoing.http import Answer, Posts

_MISSING = 404
_KEY = re.compile("<Key>(.*?)</Key>")
_FOLLOWING = re.compile("<NextContinuationToken>(.*?)</NextContinuationToken>")


class Bucket:
    """A bucket by its setting, `s3+https://KEY:SECRET@host/bucket/prefix?region=eu-central-1`."""

    def __init__(self, setting: str, posts: Posts) -> None:
        self._parts, self._posts = urlsplit(setting), posts
        self.name = f"{self._parts.scheme}://{self._parts.netloc.rpartition('@')[2]}{self._parts.path.rstrip('/')}"

    async def put(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Save an object. Raises `Unavailable` where the bucket has not confirmed it."""
        self._check(await self._send("PUT", path, body, headers or {}))

    async def get(self, path: str) -> bytes | None:
        """Return an object, None for a missing one. Raises `Unavailable`."""
        answer = await self._send("GET", path, b"", {})
        return None if answer.status == _MISSING else self._check(answer).body

    async def delete(self, path: str) -> None:
        """Delete an object; a missing one is no error. Raises `Unavailable`."""
        answer = await self._send("DELETE", path, b"", {})
        if answer.status != _MISSING:
            self._check(answer)

    async def list(self, prefix: str) -> list[str]:
        """Return the paths of all objects that begin so, in order. Raises `Unavailable`."""
        _, bucket, *folders = f"{urlsplit(self.name).path}/".split("/")
        root = "/".join(folders)
        query, paths = {"list-type": "2", "prefix": f"{root}{prefix}"}, list[str]()
        while True:
            words = "&".join(f"{name}={quote(query[name], safe='')}" for name in sorted(query))
            url = urlsplit(self.name.removeprefix("s3+"))._replace(path=f"/{bucket}", query=words).geturl()
            text = self._check(await self._request("GET", url, b"", {})).body.decode()
            paths += [unescape(key).removeprefix(root) for key in _KEY.findall(text)]
            following = _FOLLOWING.search(text)
            if following is None:
                return paths
            query["continuation-token"] = unescape(following[1])

    async def _send(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        return await self._request(method, f"{self.name.removeprefix('s3+')}/{path}", body, headers)

    async def _request(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        at = datetime.fromtimestamp(now_ms() / 1000, UTC)
        signed = sign_request(method, urlsplit(url), self._parts, body, at)
        try:
            return await self._posts.send(url, {**headers, **signed}, body or None, method=method)
        except SaysoError as error:
            raise Unavailable(f"{self.name} was not reached: {error.message}") from error

    def _check(self, answer: Answer) -> Answer:
        if not answer.accepted or answer.error:
            raise Unavailable(f"{self.name} has not accepted it: {answer.error or f'status {answer.status}'}.")
        return answer


def sign_request(
    method: str, url: SplitResult, credentials: SplitResult, body: bytes, at: datetime
) -> Mapping[str, str]:
    """Return the headers of a request to a bucket, by AWS Signature Version 4; the query may name a region."""
    access_key, secret = unquote(credentials.username or ""), unquote(credentials.password or "")
    region = credentials.query.removeprefix("region=") or "us-east-1"
    day, digest = f"{at:%Y%m%d}", sha256(body).hexdigest()
    scope = f"{day}/{region}/s3/aws4_request"
    signed = {"host": url.netloc, "x-amz-content-sha256": digest, "x-amz-date": f"{at:%Y%m%dT%H%M%SZ}"}
    lines = "".join(f"{name}:{value}\n" for name, value in signed.items())
    names = ";".join(signed)
    request = f"{method}\n{url.path}\n{url.query}\n{lines}\n{names}\n{digest}"
    text = f"AWS4-HMAC-SHA256\n{signed['x-amz-date']}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    signing_key = f"AWS4{secret}".encode()
    for part in (day, region, "s3", "aws4_request"):
        signing_key = hmac.digest(signing_key, part.encode(), "sha256")
    signature = hmac.digest(signing_key, text.encode(), "sha256").hex()
    authorization = f"AWS4-HMAC-SHA256 Credential={access_key}/{scope},SignedHeaders={names},Signature={signature}"
    return {name: value for name, value in signed.items() if name != "host"} | {"Authorization": authorization}
