"""Planning of motions in a separate process: the contract, the checks, the search and the process."""
