"""Fetching, against a server on this machine: checksums, registration, downloads that break off."""

import hashlib
import io
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from conftest import refuses

from mobpriv.datasets import DATASETS, NeedsRegistration, fetch, load
from mobpriv.datasets.fetching import sha256_of

LINE = "45.98,6.31,0,100,39744.12,2008-06-07,08:09:04\r\n"


def archive(files: dict[str, str]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name, text in files.items():
            file.writestr(name, text)
    return content.getvalue()


GEOLIFE = archive({"Geolife Trajectories 1.3/Data/000/Trajectory/a.plt": "x\r\n" * 6 + LINE})


FILES = {"/Geolife%20Trajectories%201.3.zip": GEOLIFE, "/table.csv": b"user,t,lat,lng\n", "/torn.zip": GEOLIFE[:-30]}


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
    assert fetch("geolife", url, hashlib.sha256(GEOLIFE).hexdigest()) == fetch("geolife", url) == cache / "geolife"
    assert len(asked) == 1
    data_set = load("geolife")
    assert (data_set.traces["user"].tolist(), data_set.source) == (["000"], "GeoLife 1.3")


def refused(url, says, folder):
    """It says so in one line, asks nobody and leaves nothing behind."""
    refuses(says, fetch, "mdc", url)
    assert list(folder.rglob("*")) == []


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
    refuses("first download", fetch, "mdc", url)
    assert not file.exists()


@pytest.mark.parametrize(
    ("page", "sha256", "error"),
    [
        ("/broken.zip", None, "ProtocolError|ChunkedEncodingError|ConnectionError"),
        ("/none", None, "404"),
        ("/torn.zip", None, "not a whole zip file"),
        ("/table.csv", "0" * 64, r"table\.csv: the file does not have the checksum sha256 0{64}"),
    ],
)
def test_a_download_that_breaks_off_or_is_another_file_leaves_nothing_behind(server, cache, page, sha256, error):
    with pytest.raises((ConnectionError, ValueError), match=error):
        fetch("geolife", server[0] + page, sha256)
    assert [file.name for file in cache.rglob("*")] == (["geolife"] if page == "/torn.zip" else [])


@pytest.mark.parametrize("name", ["cabspotting", "mdc", "privamov"])
def test_what_needs_registration_says_where_and_what_then(name, cache):
    with pytest.raises(NeedsRegistration) as error:
        fetch(name)
    text = str(error.value)
    for part in (DATASETS[name].page, DATASETS[name].place, str(cache / name), f"--data {name}"):
        assert part in text
    assert "\n" not in text
    with pytest.raises(NeedsRegistration, match="comes with the book"):
        fetch("city")
    refuses("no data set is called 'gowalla'; known: city", fetch, "gowalla")


ENDS = ["", *"..%2f..%2fout.txt .. %2e%2e . %2ftmp%2fout.txt ..%5cout.txt %00 a%0ab .zip ..zip a.sha256 C:x".split()]


@pytest.mark.parametrize("end", ENDS)
def test_addresses_whose_end_names_no_file_are_refused(server, tmp_path, end):
    refused(f"{server[0]}/{end}", r"must name a file|not an address", tmp_path)
    assert server[1] == []


HOSTS = ["example.org", "127.0.0.1.example.org", "127.0.0.1@example.org", r"example.org\@127.0.0.1", "localhost.example.org"]
OTHERS = ["ftp://127.0.0.1/table.csv", "file:///etc/table.csv", "https:///table.csv", "https://[/table.csv", "table.csv"]


@pytest.mark.parametrize("url", [*(f"http://{host}/table.csv" for host in HOSTS), *OTHERS])
def test_plain_http_is_refused_but_on_this_machine(url, tmp_path):
    refused(url, "nothing was fetched", tmp_path)


def test_a_redirection_to_plain_http_is_refused(server, cache):
    refuses("only https", fetch, "mdc", server[0] + "/to/http://example.org/table.csv")
    assert list(cache.rglob("*")) == []
    assert fetch("mdc", f"{server[0]}/to/{server[0]}/table.csv") == cache / "mdc"  # this machine may lead to itself


@pytest.mark.parametrize("name", ["../out.txt", "a/../../out.txt", "/out.txt", "..\\out.txt", "C:/out.txt"])
def test_an_archive_that_would_leave_its_folder_is_refused(server, tmp_path, monkeypatch, name):
    monkeypatch.setitem(FILES, "/bad.zip", archive({"inside.txt": "x", name: "x"}))
    refuses("leaves the folder", fetch, "geolife", server[0] + "/bad.zip")
    assert [path.name for path in tmp_path.rglob("*")] == ["cache", "geolife"]
