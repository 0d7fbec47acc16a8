// Package planmode is what permission mode plan adds to a session: the model is
// told to explore and to write a plan, and the tool submit_plan puts it before the
// user, who approves it, edits it or sends it back.
package planmode
