"""Runs rocrate-validator on a crate without the network: the contexts that it would fetch are put into its HTTP cache first.

Usage: crate-validate.py CACHE CRATE PROFILE; prints what it found, as JSON.
"""

import io
import json
import sys
from importlib.resources import files
from pathlib import Path

from requests.adapters import BaseAdapter
from requests.adapters import HTTPAdapter
from requests_cache import CachedSession
from rocrate_validator import models, services
from urllib3 import HTTPResponse

CRATE = "https://w3id.org/ro/crate/1.1/context"
RUN_TERMS = "https://w3id.org/ro/terms/workflow-run/context"


def contexts():
    """That of RO-Crate is a file of the package rocrate. No package has the other; of its terms we use one."""
    published = json.loads(files("rocrate").joinpath("data/ro-crate.jsonld").read_text())
    if published["@id"] != CRATE:
        sys.exit(f"rocrate has the context {published['@id']}, not 1.1: install rocrate<0.14")
    terms = {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
    return {CRATE: published, RUN_TERMS: {"@context": terms}}


class Local(BaseAdapter):
    def __init__(self, documents):
        super().__init__()
        self.documents = documents

    def send(self, request, **_):
        body = json.dumps(self.documents[request.url]).encode()
        raw = HTTPResponse(
            io.BytesIO(body), headers={"Content-Type": "application/ld+json"}, status=200, preload_content=False
        )
        return HTTPAdapter().build_response(request, raw)

    def close(self):
        pass


def main(cache, crate, profile):
    documents = contexts()
    with CachedSession(cache, backend="sqlite", expire_after=-1) as session:
        session.mount("https://", Local(documents))
        for url in documents:
            session.get(url)
    result = services.validate(
        models.ValidationSettings(
            rocrate_uri=Path(crate),
            profile_identifier=profile,
            requirement_severity=models.Severity.RECOMMENDED,
            offline=True,
            cache_path=Path(cache),
        )
    )
    print(json.dumps(result.to_dict(), default=str))


main(*sys.argv[1:])
