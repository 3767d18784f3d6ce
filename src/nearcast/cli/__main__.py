"""`python -m nearcast.cli` is the command line."""

from nearcast.cli import main

main()
