// Package patch reads and applies patches in the v4a format, by which models
// add, delete, change and move several files at once. It is pure: the caller
// reads and writes the files, and decides which it may.
//
// The format, as the apply_patch tool of OpenAI's coding agents takes it:
//
//	*** Begin Patch
//	*** Add File: PATH          every line of the file after a +
//	*** Delete File: PATH
//	*** Update File: PATH
//	*** Move to: PATH           optional
//	@@ HINT                     a line above the place; several narrow it down
//	 unchanged                  about three lines around each change
//	-goes
//	+comes
//	*** End of File             optional: the hunk is at the end
//	*** End Patch
//
// [Parse] is lenient where models are careless and the meaning is clear.
// [File.Apply] finds a hunk's lines exactly, or else without regard to trailing
// white space, then to all white space around a line, then to typographic
// punctuation.
package patch
