"""Fetch data sets into a cache folder, with checksums; over https only, except for servers on this machine.

The folder is ``MOBPRIV_CACHE`` if that is set, else the user's cache folder. A known checksum is enforced. If the publisher
gives none, the first download is trusted: its SHA-256 is stored next to it, and later files must match it.
"""

import hashlib
import ipaddress
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pooch
import pyarrow as pa
import requests

from mobpriv.datasets.catalogue import DATASETS


class NeedsRegistration(RuntimeError):
    """The data set is not public; the message explains what to do."""


def cache_folder() -> Path:
    return Path(os.environ.get("MOBPRIV_CACHE") or pooch.os_cache("mobpriv"))


def cached(name: str) -> Path:
    """The folder of a data set in the cache; :exc:`FileNotFoundError` explains how to fill it."""
    folder = cache_folder() / name
    if not folder.is_dir():
        raise FileNotFoundError(f"{name}: not in the cache. {described(name).how_to_get(name, cache_folder())}")
    return folder


def described(name: str):
    if name not in DATASETS:
        raise ValueError(f"no data set is called {name!r}; known: {', '.join(DATASETS)}")
    return DATASETS[name]


def fetch(name: str, url: str | None = None, sha256: str | None = None, progress: bool = False) -> Path:
    """Download a data set into the cache, unless it is there already; return its folder. A zip is unpacked.

    ``url`` and ``sha256`` replace those of the catalogue (a mirror). A failed download leaves no files. Errors:

    * :class:`NeedsRegistration` if no public address exists;
    * :exc:`ValueError` for a wrong checksum, an address that is not https, or an archive that would write outside its folder;
    * :exc:`ConnectionError` if the address cannot be read to its end.
    """
    known = described(name)
    if url is None and known.url is None:
        raise NeedsRegistration(known.how_to_get(name, cache_folder()))
    url, sha256 = url or known.url, sha256 or (known.sha256 if url is None else None)
    folder = cache_folder() / name
    file = folder / _file_name(url)
    record = file.with_name(file.name + ".sha256")
    expected = sha256 or (record.read_text().split()[0] if record.exists() else None)
    if not (file.exists() and expected == sha256_of(file)):
        known_from = (
            "" if sha256 else f", recorded in {record} at the first download (delete that if the file was replaced on purpose)"
        )
        _download(url, file, expected, known_from, progress)
    if file.suffix == ".zip":
        _unpack(file)
    if not record.exists():
        record.write_text(f"{sha256_of(file)}  {file.name}\n")
    return folder


def _file_name(url: str) -> str:
    """The name under which a download is stored: the last part of the address, if that names a file and nothing else."""
    _secure(url)
    name = unquote(urlsplit(url).path.rsplit("/", 1)[-1])
    if not name or name.startswith(".") or name.endswith(".sha256") or re.search(r'[\x00-\x1f\x7f/\\:*?"<>|]', name):
        raise ValueError(f"{url}: the last part of the address must name a file (got {name!r}); nothing was fetched")
    return name


def _secure(url: str, machine: bool = True) -> None:
    """Refuse addresses that are not https. ``machine``: a server on this machine may use plain http."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError as reason:
        raise ValueError(f"{url}: not an address ({reason}); nothing was fetched") from None
    # with these characters programs disagree on where the host ends
    if not host or "@" in parts.netloc or re.search(r"[\x00-\x20\x7f\\]", url):
        raise ValueError(f"{url!r}: not an address of a file; nothing was fetched")
    if parts.scheme != "https" and not (machine and parts.scheme == "http" and _this_machine(host)):
        raise ValueError(f"{url}: only https is fetched, other downloads can be changed on the way; nothing was fetched")


def _this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _download(url: str, file: Path, expected: str | None, known_from: str, progress: bool) -> None:
    new = not file.parent.exists()
    file.parent.mkdir(parents=True, exist_ok=True)
    # download to a temporary folder and rename when complete, so that a file under its final name is always complete
    place = Path(tempfile.mkdtemp(dir=file.parent))
    pooch.get_logger().setLevel("WARNING")

    def onwards(response, **_):  # called before a redirection is followed; another server must not redirect to this machine
        if response.is_redirect:
            _secure(urljoin(response.url, response.headers["location"]), _this_machine(urlsplit(response.url).hostname))

    downloader = pooch.HTTPDownloader(progressbar=progress, hooks={"response": onwards})
    try:
        pooch.retrieve(url, f"sha256:{expected}" if expected else None, file.name, place, downloader=downloader)
        os.replace(place / file.name, file)
    except ValueError as reason:
        if "does not match the known hash" not in str(reason):
            raise
        raise ValueError(f"{url}: the file does not have the checksum sha256 {expected}{known_from}; it was not kept") from None
    except requests.RequestException as reason:
        raise ConnectionError(f"{url}: not fetched ({type(reason).__name__}: {str(reason)[:100]}); nothing was kept") from None
    finally:
        shutil.rmtree(place)
        if new and not file.exists():
            file.parent.rmdir()


def _unpack(file: Path) -> None:
    target = file.with_suffix("")
    if target.is_dir():
        return
    place = Path(tempfile.mkdtemp(dir=file.parent))
    try:
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                parts = name.replace("\\", "/").split("/")
                if ".." in parts or name[:1] in ("/", "\\") or ":" in name:
                    raise zipfile.BadZipFile(f"{name!r} leaves the folder")
            archive.extractall(place)
        place.rename(target)
    # zipfile's errors for an incomplete file, for an unknown compression (NotImplementedError), and for a password (RuntimeError)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as reason:
        file.unlink()
        raise ValueError(f"{file}: not a whole zip file ({reason}); it was not kept") from None
    finally:
        shutil.rmtree(place, ignore_errors=True)


def sha256_of(path: Path, max_bytes: int | None = None) -> str:
    """SHA-256 of a file, or of its first ``max_bytes`` bytes.

    For a folder, of its files' names, sizes and contents, sorted by name.
    """
    if max_bytes is not None:
        return hashlib.sha256(pa.memory_map(str(path)).read_buffer(max_bytes)).hexdigest()
    if path.is_file():
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    total = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        total.update(f"{file.relative_to(path).as_posix()}\0{file.stat().st_size}\0{sha256_of(file)}\n".encode())
    return total.hexdigest()
