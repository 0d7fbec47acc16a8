// Package tools holds the built-in tools: read_file, read_many_files,
// write_file, edit_file, apply_patch, shell, job, grep, glob, list_dir,
// update_plan and ask_user.
//
// Each tool is one Go file and one Markdown file, its description for the
// model. A tool reaches files and commands through the Environment of its call
// alone, so that it works the same on this machine, in a container and on a
// remote host, and so that nothing goes around what was granted.
//
// All tools are safe for concurrent use. What lasts from one call to the next
// belongs to the toolset, by session: the commands that go on in the background,
// and the guard before the tools that change files, which remembers which files
// were read and as they were then.
package tools
