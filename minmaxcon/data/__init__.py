"""Sources of samples, splits and weights."""

from minmaxcon.data.finite import Finite
from minmaxcon.data.on_disk import ArrayBlocks, BlockReader, OnDisk
from minmaxcon.data.splits import Standardizer, split_indices, stratified_split_indices
from minmaxcon.data.stream import BadPoint, Preparation, Stream
from minmaxcon.data.weights import population_weights

__all__ = [
    "ArrayBlocks",
    "BadPoint",
    "BlockReader",
    "Finite",
    "OnDisk",
    "Preparation",
    "Standardizer",
    "Stream",
    "population_weights",
    "split_indices",
    "stratified_split_indices",
]
