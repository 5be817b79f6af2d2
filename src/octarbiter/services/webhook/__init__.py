"""Who may create or change what? Answers the API server's questions, before anything is written."""
