"""Fetching, against a server on this machine: checksums, registration, downloads that break off."""

import hashlib
import io
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mobpriv.datasets import DATASETS, NeedsRegistration, fetch, load
from mobpriv.datasets.fetching import sha256_of

LINE = "45.98,6.31,0,100,39744.12,2008-06-07,08:09:04\r\n"


def archive() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("Geolife Trajectories 1.3/Data/000/Trajectory/a.plt", "x\r\n" * 6 + LINE)
    return content.getvalue()


FILES = {"/Geolife%20Trajectories%201.3.zip": archive(), "/table.csv": b"user,t,lat,lng\n", "/torn.zip": archive()[:-30]}


@pytest.fixture
def server():
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            if self.path.startswith("/to/"):
                self.send_response(302)
                self.send_header("Location", self.path.removeprefix("/to/"))
                self.end_headers()
                return
            if self.path not in FILES and self.path != "/broken.zip":
                self.send_error(404)
                return
            body = FILES.get(self.path, b"begin")
            self.send_response(200)
            self.send_header("Content-Length", str(len(body) + 1000 * (self.path == "/broken.zip")))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MOBPRIV_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_an_archive_is_unpacked_once_and_read(server, cache):
    url, asked = server[0] + "/Geolife%20Trajectories%201.3.zip", server[1]
    folder = fetch("geolife", url, hashlib.sha256(FILES["/Geolife%20Trajectories%201.3.zip"]).hexdigest())
    assert folder == cache / "geolife"
    assert fetch("geolife", url) == folder
    assert len(asked) == 1
    found = load("geolife")
    assert found.traces["user"].tolist() == ["000"]
    assert found.source == "GeoLife 1.3"


def test_a_wrong_checksum_leaves_nothing_behind(server, cache):
    with pytest.raises(ValueError, match=r"table\.csv: the file does not have the checksum sha256 0{64}"):
        fetch("mdc", server[0] + "/table.csv", "0" * 64)
    assert list(cache.rglob("*")) == []


def test_the_first_download_is_trusted_and_holds_ever_after(server, cache, monkeypatch):
    url = server[0] + "/table.csv"
    file = fetch("mdc", url) / "table.csv"
    record = cache / "mdc" / "table.csv.sha256"
    assert record.read_text() == f"{sha256_of(file)}  table.csv\n"
    file.write_text("changed on disk")
    fetch("mdc", url)  # fetched again, for it no longer has its checksum
    assert file.read_bytes() == FILES["/table.csv"]
    file.unlink()
    monkeypatch.setitem(FILES, "/table.csv", b"changed at the source")
    with pytest.raises(ValueError, match="first download"):
        fetch("mdc", url)
    assert not file.exists()


@pytest.mark.parametrize(
    ("page", "error"), [("/broken.zip", "ProtocolError|ChunkedEncodingError|ConnectionError"), ("/none", "404")]
)
def test_a_download_that_breaks_off_leaves_nothing_behind(server, cache, page, error):
    with pytest.raises(ConnectionError, match=error):
        fetch("geolife", server[0] + page)
    assert list(cache.rglob("*")) == []


def test_an_archive_that_is_not_whole(server, cache):
    with pytest.raises(ValueError, match="not a whole zip file"):
        fetch("geolife", server[0] + "/torn.zip")
    assert list((cache / "geolife").iterdir()) == []


@pytest.mark.parametrize("name", ["cabspotting", "mdc", "privamov"])
def test_what_needs_registration_says_where_and_what_then(name, cache):
    with pytest.raises(NeedsRegistration) as error:
        fetch(name)
    text = str(error.value)
    assert DATASETS[name].page in text
    assert DATASETS[name].place in text
    assert str(cache / name) in text
    assert f"--data {name}" in text
    assert "\n" not in text


def test_what_is_not_known():
    with pytest.raises(ValueError, match="no data set is called 'gowalla'; known: city"):
        fetch("gowalla")
    with pytest.raises(NeedsRegistration, match="comes with the book"):
        fetch("city")


@pytest.mark.parametrize(
    "end",
    [
        "..%2f..%2fout.txt",
        "..",
        "%2e%2e",
        ".",
        "",
        "%2ftmp%2fout.txt",
        "..%5cout.txt",
        "%00",
        "a%0ab",
        ".zip",
        "..zip",
        "a.sha256",
        "C:x",
    ],
)
def test_addresses_whose_end_names_no_file_are_refused(server, cache, tmp_path, end):
    with pytest.raises(ValueError, match=r"must name a file|not an address") as error:
        fetch("mdc", f"{server[0]}/{end}")
    assert "\n" not in str(error.value)
    assert server[1] == []
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/table.csv",
        "http://127.0.0.1.example.org/table.csv",
        "http://127.0.0.1@example.org/table.csv",
        "http://example.org\\@127.0.0.1/table.csv",
        "http://localhost.example.org/table.csv",
        "ftp://127.0.0.1/table.csv",
        "file:///etc/table.csv",
        "https:///table.csv",
        "https://[/table.csv",
        "table.csv",
    ],
)
def test_plain_http_is_refused_but_on_this_machine(url, tmp_path):
    with pytest.raises(ValueError, match="nothing was fetched") as error:
        fetch("mdc", url)
    assert "\n" not in str(error.value)
    assert list(tmp_path.rglob("*")) == []


def test_a_redirection_to_plain_http_is_refused(server, cache):
    with pytest.raises(ValueError, match="only https"):
        fetch("mdc", server[0] + "/to/http://example.org/table.csv")
    assert list(cache.rglob("*")) == []
    assert fetch("mdc", f"{server[0]}/to/{server[0]}/table.csv") == cache / "mdc"  # this machine may lead to itself


@pytest.mark.parametrize("name", ["../out.txt", "a/../../out.txt", "/out.txt", "..\\out.txt", "C:/out.txt"])
def test_an_archive_that_would_leave_its_folder_is_refused(server, cache, tmp_path, monkeypatch, name):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("inside.txt", "x")
        file.writestr(name, "x")
    monkeypatch.setitem(FILES, "/bad.zip", content.getvalue())
    with pytest.raises(ValueError, match="leaves the folder") as error:
        fetch("geolife", server[0] + "/bad.zip")
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.rglob("*")] == ["cache", "geolife"]
