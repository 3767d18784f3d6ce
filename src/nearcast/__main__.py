"""`python -m nearcast` is the command line."""

from nearcast.cli import main

main()
