// Package patch parses and applies patches in the v4a format, with which models
// add, delete, change and move several files at once. It is pure: the caller
// reads and writes the files, and checks permissions.
//
// The format, as the apply_patch tool of OpenAI's coding agents takes it:
//
//	*** Begin Patch
//	*** Add File: PATH          every line of the file after a +
//	*** Delete File: PATH
//	*** Update File: PATH
//	*** Move to: PATH           optional
//	@@ HINT                     a line above the change; several narrow it down
//	 unchanged                  about three lines around each change
//	-removed
//	+added
//	*** End of File             optional: the hunk is at the end
//	*** End Patch
//
// [Parse] accepts common mistakes of models whose meaning is clear. [File.Apply]
// looks for a hunk's lines exactly, then ignoring trailing white space, then
// white space around lines, then typographic punctuation.
package patch
