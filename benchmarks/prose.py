"""What the report says between its tables."""

HEAD = (
    "Written by `make bench`, all in one run on one machine. One thread unless stated; always "
    "through the public API, arrays with NaN, validation included; p = .3. What is compared is "
    "measured in turns, so that noise hits both sides. Numbers are medians (quartiles) over "
    "repeats; a ratio is taken repeat by repeat."
)
QUICK = " This was a quick run: fewer repeats, shorter horizons."
CONTEST = (
    "choose + learn per round by each library's documented online path with its default settings, "
    "all on the same rounds in turns, whole runs with burn-in and epoch openings. Those that "
    "cannot do with holes see every entry, the others 30 % of them. A library that takes one "
    "context for all arms gets the whole slate as that context. Imputers are fitted at rounds 30, "
    "60, 120, …, which their time includes; PPCA is told the rank, as TofuPov is."
)
REAL_TABLES = (
    "Problems of the study `tables` at seeds that neither the study nor the choice of the defaults "
    "of `LatentUcb` uses; that choice had other problems, some from the same tables. The reward is "
    "the target of the chosen row, with noise in the catalogue. Everybody plays the same rounds in "
    "turns. Vowpal Wabbit has its default settings; where an entry is hidden, it sees the mean of "
    "the column so far. Its time does not include this filling. In hepatitis and in the catalogue "
    "rows come back with the same holes: only `LatentUcb` learns something about each row."
)
FLOORS = (
    "The floor of a round: all K systems of a slate in one compiled call made from Python, slates "
    "rotated beyond the cache; one `Decision`; and the second-moment product in BLAS, one per "
    "block of about 1000 arms. The budget is for the mean over all rounds, which has its share of "
    "that product; the row below it is the median round, which has none, unless one slate fills a "
    "block. Here the compiled part alone, called from compiled code."
)
SHAPES = (
    "Products this small do not come near the rate of a large one, neither ours nor those of BLAS: "
    "at rank 3 each arm ends in nine sums of 30 numbers, at rank 20 the seen rows must be gathered "
    "first. So the last column compares with what BLAS reaches on a dense product of the same "
    "shape, in the cache, with nothing to gather, no masks to find and no systems to solve."
)
WHOLE_RUNS = (
    "TofuPov with full replay and the yardstick (`benchmarks/yardstick.py`), T = 400, burn-in and "
    "epoch openings included."
)
MEMORY = (
    "Memory of a run at (30, 3, 8): what the policy holds at the end, and the peak of the whole "
    "process. Nothing is replayed unless stated, so no played arms are kept."
)
SERVICE = (
    "`LatentUcb()`, choose + learn, arms that never come back, 40 % seen, the first 100 rounds "
    "left out. Refits inline: processor time. Refits in the background: wall clock, in a loop "
    "without pauses, which is as many rounds as one thread can serve. The median is that of the "
    "last tenth of the rounds. What the policy holds is the size of its pickle."
)
PROFILES = (
    "Line by line of the package, each with what it calls outside. Watching costs about a "
    "microsecond per line, so that Python looks dearer than it is where a round takes only some "
    "microseconds."
)
