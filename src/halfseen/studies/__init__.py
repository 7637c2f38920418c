"""The paper's figures and tables as data: which worlds, which methods, which seeds."""
