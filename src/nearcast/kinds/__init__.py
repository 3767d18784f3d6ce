"""One folder for each kind of question, with all that only this kind needs."""
