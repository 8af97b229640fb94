"""Extensions of MkDocs that build the manual."""
