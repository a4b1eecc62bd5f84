"""Dataset names: the paper's six, the built-in ones, and others from the TU collection."""

from __future__ import annotations

from bench.registry import Registry

_TU = "bench.datasets.tu:TUCollection"

DATASETS = Registry("dataset", "augbench.datasets", "bench.datasets.base:Dataset")
DATASETS.add("PROTEINS", _TU, "1113 proteins, enzyme or not; 3 node labels", name="PROTEINS")
DATASETS.add("NCI1", _TU, "4110 compounds against lung cancer; 37 node labels", name="NCI1")
DATASETS.add("DD", _TU, "1178 large proteins, enzyme or not; 89 node labels", name="DD")
DATASETS.add("IMDB-BINARY", _TU, "1000 actor networks, 2 genres; structure only", name="IMDB-BINARY")
DATASETS.add("IMDB-MULTI", _TU, "1500 actor networks, 3 genres; structure only", name="IMDB-MULTI")
DATASETS.add("REDDIT-MULTI-5K", _TU, "4999 discussion threads, 5 forums; structure only", name="REDDIT-MULTI-5K")
DATASETS.add("tu", _TU, "any other set of the TU collection, or your own in its layout: tu:name=MUTAG")
DATASETS.add("digits", "bench.datasets.digits:Digits", "built in: 1797 handwritten digits as graphs of lit pixels")
DATASETS.add("synthetic", "bench.datasets.synthetic:Synthetic", "built in: four families of random graphs, no features")

# Whether the paper's datasets have node labels, for planning before they are downloaded.
PAPER_SETS = {
    "PROTEINS": True,
    "NCI1": True,
    "DD": True,
    "IMDB-BINARY": False,
    "IMDB-MULTI": False,
    "REDDIT-MULTI-5K": False,
}

# Other classification datasets of the collection (Morris et al., 2020) that can be used without `tu:name=`.
OTHER_TU_SETS = frozenset(
    [
        "AIDS",
        "BZR",
        "BZR_MD",
        "COIL-DEL",
        "COIL-RAG",
        "COLLAB",
        "COLORS-3",
        "COX2",
        "COX2_MD",
        "Cuneiform",
        "DBLP_v1",
        "DHFR",
        "DHFR_MD",
        "ENZYMES",
        "ER_MD",
        "FIRSTMM_DB",
        "FRANKENSTEIN",
        "Fingerprint",
        "KKI",
        "Letter-high",
        "Letter-low",
        "Letter-med",
        "MCF-7",
        "MCF-7H",
        "MOLT-4",
        "MOLT-4H",
        "MSRC_21",
        "MSRC_21C",
        "MSRC_9",
        "MUTAG",
        "Mutagenicity",
        "NCI-H23",
        "NCI-H23H",
        "NCI109",
        "OHSU",
        "OVCAR-8",
        "OVCAR-8H",
        "P388",
        "P388H",
        "PC-3",
        "PC-3H",
        "PROTEINS_full",
        "PTC_FM",
        "PTC_FR",
        "PTC_MM",
        "PTC_MR",
        "Peking_1",
        "REDDIT-BINARY",
        "REDDIT-MULTI-12K",
        "SF-295",
        "SF-295H",
        "SN12C",
        "SN12CH",
        "SW-620",
        "SW-620H",
        "SYNTHETIC",
        "SYNTHETICnew",
        "Synthie",
        "TRIANGLES",
        "UACC257",
        "UACC257H",
        "Yeast",
        "YeastH",
        "deezer_ego_nets",
        "facebook_ct1",
        "facebook_ct2",
        "github_stargazers",
        "reddit_threads",
        "twitch_egos",
    ]
)
