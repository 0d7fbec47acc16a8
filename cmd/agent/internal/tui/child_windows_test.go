package tui

// childVar is never set here: the tests that need a child need a
// pseudo-terminal of Unix.
const childVar = "TUI_TEST_CHILD"

func child(string) int { return 2 }
