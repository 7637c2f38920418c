"""Imputers of other libraries, with their default settings, in the peers' environment.

    python -m benchmarks.peers.imputers NAME FILE

fills the table of a file and prints one line of JSON: error and seconds, or why it failed.
"""

import json
import sys
import time
import traceback
import warnings

import numpy as np


class Ppca:
    """It needs to be told the rank: it gets the one that we found."""

    PACKAGE, TITLE = "ppca-py", "ppca-py, given our rank"

    def __call__(self, table, rank):
        from ppca import PPCA

        return PPCA(max(1, rank), random_state=0).fit(table).impute_missing(table)[0]


class SoftImpute:
    PACKAGE, TITLE = "fancyimpute", "SoftImpute of fancyimpute"

    def __call__(self, table, rank):
        from fancyimpute import SoftImpute

        return SoftImpute(verbose=False).fit_transform(table)


PEERS = {peer.__name__: peer for peer in (Ppca, SoftImpute)}


def fill(imputer, full, table, rank=0, standardise=True):
    """Return error on hidden entries, in deviations of their features, and processor time."""
    if standardise:
        centre, scale = np.nanmean(table, axis=0), np.nanstd(table, axis=0)
        scale[~(scale > 0.0)] = 1.0
        full, table = (full - centre) / scale, (table - centre) / scale
    started = time.process_time()
    filled = imputer(table, rank)
    taken = time.process_time() - started
    scored = np.isnan(table) & ~np.isnan(full)
    rest = ((filled - full) / np.nanstd(full, axis=0))[scored]
    return {"error": float(np.sqrt(np.mean(rest**2))), "seconds": taken}


def main(name, path):
    warnings.simplefilter("ignore")
    try:
        with np.load(path) as given:
            found = fill(PEERS[name](), given["full"], given["table"], int(given["rank"]))
    except Exception as error:
        found = {"reason": traceback.format_exception_only(error)[-1].strip()}
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
