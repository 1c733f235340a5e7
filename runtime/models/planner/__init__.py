"""Planning of motions of arms, in a process of its own: the contract, the checks, the search and the process."""
