"""Catalogue of the data sets: origin, terms of use, and how to obtain them."""

from typing import NamedTuple

CITY_FILE = "city.parquet"
REGION_FILE = "region.parquet"


class Description(NamedTuple):
    title: str
    what: str
    licence: str
    citation: str
    page: str  # where it is described and, if it can be, obtained
    place: str  # what belongs under that name in the cache folder ("" if it comes with the book)
    url: str | None = None  # a public address, if there is one
    sha256: str | None = None  # of the file at that address, if it was checked
    synthetic: bool = False
    persons: str = ""  # prefix of its persons' names, if it holds others, too; "" if all are persons, or none
    kind: str = "traces"  # traces | calls
    zone: str = ""  # time zone of its people

    def how_to_get(self, name: str, cache) -> str:
        """One line that explains how to get the set."""
        if not self.place:
            return f"{name} comes with the book: nothing to fetch"
        if self.url:
            return f"mobpriv data fetch {name} downloads it from {self.url} into {cache / name}"
        return f"register at {self.page}, then put {self.place} into {cache / name}; then --data {name} reads it"


DATASETS: dict[str, Description] = {
    "city": Description(
        "The synthetic city",
        "30 days of 120 commuters and 75 cabs in a city that does not exist, made from one seed; the true stays are known",
        "CC0 1.0",
        "mobpriv.datasets.city; after Song et al. 2010 (doi:10.1038/nphys1760), "
        "Pappalardo and Simini 2018 (doi:10.1007/s10618-017-0548-4), "
        "Jiang et al. 2016 (doi:10.1073/pnas.1524261113)",
        "data/README.md",
        "",
        synthetic=True,
        persons="p",
        zone="UTC",
    ),
    "region": Description(
        "The synthetic region",
        "call records of 12 000 people over four weeks on an island that does not exist, made from one seed; true roles are known",
        "CC0 1.0",
        "mobpriv.datasets.region; after Song et al. 2010 (doi:10.1038/nphys1760), "
        "Pappalardo and Simini 2018 (doi:10.1007/s10618-017-0548-4), Malmgren et al. 2008 (doi:10.1073/pnas.0800332105)",
        "data/README.md",
        "",
        synthetic=True,
        kind="calls",
        zone="Europe/Lisbon",
    ),
    "cabspotting": Description(
        "Cabspotting (CRAWDAD epfl/mobility)",
        "537 cabs in the San Francisco Bay Area, 2008-05-17 to 2008-06-10, 11.2 million records, about one a minute",
        "research use with citation; CRAWDAD asks users not to work towards the true identity of anyone in the data",
        "M. Piorkowski, N. Sarafijanovic-Djukic, M. Grossglauser: CRAWDAD dataset epfl/mobility (v. 2009-02-24), "
        "doi:10.15783/C7J010",
        "https://ieee-dataport.org/open-access/crawdad-epflmobility",
        "the unpacked files new_*.txt of cabspottingdata.tar.gz",
        zone="America/Los_Angeles",
    ),
    "geolife": Description(
        "GeoLife 1.3",
        "182 people, most in Beijing, 2007 to 2012, 24.9 million records, most every 1 to 5 seconds",
        "Microsoft Research License Agreement: non-commercial, no redistribution",
        "Y. Zheng, X. Xie, W.-Y. Ma: GeoLife: A Collaborative Social Networking Service among User, Location and Trajectory, "
        "IEEE Data Engineering Bulletin 33(2), 2010",
        "https://www.microsoft.com/en-us/download/details.aspx?id=52367",
        "the unpacked folder Data",
        # no checksum is published, and we have not verified one: the first download is trusted and recorded
        url="https://download.microsoft.com/download/F/4/8/F4894AA5-FDBC-481E-9285-D5F8C4C4F039/Geolife%20Trajectories%201.3.zip",
        zone="Asia/Shanghai",
    ),
    "mdc": Description(
        "Mobile Data Challenge (Nokia, Lausanne Data Collection Campaign)",
        "about 185 people around Lake Geneva, 2009 to 2011, smartphones",
        "by agreement with Idiap: universities and non-profit organisations, no redistribution",
        "J. K. Laurila et al.: The Mobile Data Challenge: Big Data for Mobile Computing Research, Pervasive 2012 workshop",
        "https://www.idiap.ch/dataset/mdc",
        "gps.csv and records.csv",
        zone="Europe/Zurich",
    ),
    "privamov": Description(
        "PrivaMov",
        "about 100 students and staff of universities in Lyon, 2014 to 2016, smartphones, 156 million GPS records",
        "by non-disclosure agreement with LIRIS",
        "S. Ben Mokhtar et al.: PRIVA'MOV: Analysing Human Mobility Through Multi-Sensor Datasets, NetMob 2017 (hal-01578557)",
        "https://projet.liris.cnrs.fr/privamov/project/",
        "the file privamov-gps",
        zone="Europe/Paris",
    ),
}
