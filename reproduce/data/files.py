"""Real data of the papers, read from the folder that the variable DPADAPT_DATA names.

The files are not part of the project: licences differ, and together they are large. Each is checked
against the sha256 recorded here, so that results on another copy cannot pass for results on this.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

__all__ = ["MissingDataError", "data_file"]


VARIABLE = "DPADAPT_DATA"
_CHECKSUMS = {
    "wind/wind.csv.gz": "aeede1fbdfb75117ae26dbbec77ed2ccb54ebb5ccf4733e68360ba97edcf156f",
    "gas_drift/batch1.dat.gz": "a4c7d3adf2472039c58fa058468175a2ae761cdda3315700fc900e830d3dd26a",
    "gas_drift/batch2.dat.gz": "1cf129576d799a9ee2e3e730dd17cd49f4e8d0e8e4a4d5e380e4af16c4291836",
    "gas_drift/batch3.dat.gz": "bead15207f22cbda59115bccfc276c5577337d4fd169ab9ce1d4eeff38f61495",
    "gas_drift/batch4.dat.gz": "867319098bd7a885bdec5eb67f56b6a2424aeb67a7c8fde436d82248784dcb85",
    "gas_drift/batch5.dat.gz": "28f60a451e3011a35ff16717b29bcaea8308d89d09f7084f32263d6ec7827ef9",
    "gas_drift/batch6.dat.gz": "9d35eda987ef3aa048d9363b64e958179d7ef6c9be0f291cbdb4e4874dc689e2",
    "gas_drift/batch8.dat.gz": "7ae96a6b806f20a3215aab4b809124f8aec0de680ea4ea38a40d15dd55306384",
    "gas_drift/batch9.dat.gz": "890e1c7ea58495642c8e81b321b7307b6120a5ca68ddf830eea96b03a942e364",
    "airline/flights2001_from_ORD.csv.gz": (
        "42fe48e188775e43d7b1eb41e67410b712cca828970dc15d0e4c8e41a3a8a721"
    ),
    "online_news/news_sample_7928.csv.gz": (
        "799aedb3cfd249e63aa69aea38c184752c3d4ddfec3a073e62e3fe75d8e0c8bb"
    ),
    "adult/adult.data.gz": "c7a2b4716a97f930123e0baf879188d701e798172631a654fc703d4b082907f3",
    "adult/adult.test.gz": "41743e91fe4d25fd353ea754bfdb850444d050bd14aaee06a5be952b6dbfa3ec",
    "german_credit/SouthGermanCredit.asc": (
        "f0caee5ff54c4a4e9689bc10d5b23ccf5088862a846ab603f9536f135aae30d3"
    ),
    "speaker_accent/accent-mfcc-data-1.csv": (
        "f23ce6ae82578895e7e6a5d3cbe49b2d27423782f568b3d5ff11bdd66cf27b60"
    ),
    "amazon_reviews/books_test.svmlight.gz": (
        "0f139e7404dda1c014a6410b485513e163bf16526da4cbdcd6dac893ce4b9842"
    ),
    "amazon_reviews/books_train.svmlight.gz": (
        "93a6e772bb6a55f728a31bcd405091cfbdd83c65e0592ced4edafed0556d00db"
    ),
    "amazon_reviews/dvd_test.svmlight.gz": (
        "657046eca0635f24d045466d2d9ed76161fbe7e0bbe95b2ec3a92da88b7b8e46"
    ),
    "amazon_reviews/dvd_train.svmlight.gz": (
        "ea44d696f2e32d93c4b5f53dc3f5b50aa17a4e2c1af88530cb88ea1d32609ed4"
    ),
    "amazon_reviews/electronics_test.svmlight.gz": (
        "cad5419fa3f27bf00b877418c9f848782c80051a875e077871f30f112c17ddcd"
    ),
    "amazon_reviews/electronics_train.svmlight.gz": (
        "10d34b416b4c7e4e55227e136a85da9493937ea2b12149f814ed6cacec0cb972"
    ),
    "amazon_reviews/kitchen_test.svmlight.gz": (
        "270ff6cfa01e2bbefd47798ac11f491dff11c3a34a09faec0852d30704283ec0"
    ),
    "amazon_reviews/kitchen_train.svmlight.gz": (
        "a7c6491d2b917bca70968b9ea0a45d9cbf07717a00fc17224ceadbf2d473151e"
    ),
    "covtype/covtype_15120.csv.gz": (
        "4c6b0be9a12c1843b5484fe8020a138bfbdbe1401470a9ce70aafe710145efdc"
    ),
    "mnist_usps/mnist_usps.npz": "2970847e776ade2e1a0a3e34023f6a882b8b0210128fbd195c0fff2be0b27bd1",
    "office_caltech10/googlenet1024/amazon.mat": (
        "bae9ee6e8f7ca305120dd970f2c90471f4ef8dda4cb2ad2404c38bb26cb56ba9"
    ),
    "office_caltech10/googlenet1024/dslr.mat": (
        "5f7c6211581f846b7b5534429fb62bfb7e490e88aacfc8bee97eb0b0224dbd89"
    ),
    "office_caltech10/googlenet1024/webcam.mat": (
        "57774bbdf97433b5fb5a6333e302f077444c069537138b60ef417f48ee65d296"
    ),
    "office_caltech10/surf/amazon.mat": (
        "df32548b994e18d364c99e1f317e1fae100597259f0423a41b90f4f68187bb1f"
    ),
    "office_caltech10/surf/caltech10.mat": (
        "4f9334c8ced489d5054de97a5fd51a61f017f3bcd1f38c9a85c6d78cb9d7bda5"
    ),
    "office_caltech10/surf/dslr.mat": (
        "44d673c68e1d07b837893aa74dba3b986e4a6cc3fd66f0dd357683bdef059216"
    ),
    "office_caltech10/surf/webcam.mat": (
        "a6a9c78b4b7181dfbb58bcfd351d4ebd737f171c31247b8884948aa156d3f700"
    ),
    "amazon_reviews/text/books_negative.parsed.gz": (
        "5a97caaffdb96face34830925e738a809e0a6ebf1a78d158a744e8f5b9c9f64b"
    ),
    "amazon_reviews/text/books_positive.parsed.gz": (
        "bba44d9f7e6ba3c9bf69d424087431258e79526548bd2d27f670ba9b0abfb9e5"
    ),
    "amazon_reviews/text/dvd_negative.parsed.gz": (
        "32d2e70144342cbd9a3eeaf69ddd394c0d0c0678e7ce9bf214e9daf310c41cc2"
    ),
    "amazon_reviews/text/dvd_positive.parsed.gz": (
        "9a31946f666e0f9807d8742c70167dca219c845c8d1fea8bde0485abeea4be70"
    ),
    "amazon_reviews/text/electronics_negative.parsed.gz": (
        "e4410d3e5e566f8fef3e94de5b6bd23ca2544f63dcdc2b5a6d195d127a1c0a87"
    ),
    "amazon_reviews/text/electronics_positive.parsed.gz": (
        "9b54e6ece80c8c071377a393693372bbcd05a0d8fc266b1ed0f28d540e19bebe"
    ),
    "amazon_reviews/text/kitchen_negative.parsed.gz": (
        "3ccee0b7e109405919239bfb09e7bf820688a6aaa016cf840d07fe72ccfb3279"
    ),
    "amazon_reviews/text/kitchen_positive.parsed.gz": (
        "025948bd7c0351539addcc4bc536e499b87a76b24989d7a59d5d21a27fbf728c"
    ),
}
_SOURCES = {
    "wind": "the data set `wind` of the R package gstat (data/wind.rda), saved as CSV",
    "gas_drift": "UCI data set 270, Gas Sensor Array Drift at Different Concentrations",
    "airline": "the flights from ORD in vega-datasets 3.2.1, flights-3m.parquet, saved as CSV",
    "online_news": "a fifth of UCI data set 332, Online News Popularity",
    "adult": "UCI data set 2, Adult",
    "german_credit": "UCI data set 573, South German Credit",
    "speaker_accent": "UCI data set 518, Speaker Accent Recognition",
    "amazon_reviews": "the multi-domain sentiment data of Blitzer et al. 2007, as 5,000 counts",
    "covtype": "15,120 rows of UCI data set 31, Covertype, as Kaggle's train.csv",
    "mnist_usps": "2,000 digits of MNIST and 1,800 of USPS (MNIST_vs_USPS.mat), saved as npz",
    "office_caltech10": "SURF and GoogLeNet features of Office-Caltech 10 (Gong et al. 2012)",
}


class MissingDataError(ValueError):
    """A data set is not there, or is not the one that is meant.

    Examples
    --------
    >>> issubclass(MissingDataError, ValueError)
    True
    """


def data_file(name: str) -> Path:
    """Path of a data file whose content is the recorded one.

    Parameters
    ----------
    name : str
        Relative to the folder that DPADAPT_DATA names, as in ``"wind/wind.csv.gz"``.

    Examples
    --------
    >>> try:
    ...     data_file("wind/no-such-file.gz")
    ... except MissingDataError as error:
    ...     "wind/no-such-file.gz" in str(error)
    True
    """
    folder = os.environ.get(VARIABLE)
    source = _SOURCES.get(name.split("/")[0], "the paper's authors")
    if not folder:
        raise MissingDataError(
            f"{name} is needed: set the environment variable {VARIABLE} to a folder that holds it "
            f"(it is {source}{_packing(name)})."
        )
    path = Path(folder) / name
    if not path.is_file():
        raise MissingDataError(
            f"{name} is not in the folder that {VARIABLE} names (it is {source}{_packing(name)})."
        )
    if hashlib.sha256(path.read_bytes()).hexdigest() != _CHECKSUMS.get(name):
        raise MissingDataError(
            f"{name} in the folder that {VARIABLE} names is not the recorded file (sha256 differs)."
        )
    return path


def _packing(name: str) -> str:
    return ", compressed by gzip" if name.endswith(".gz") else ""
