// Package tools holds the built-in tools: read_file, read_many_files,
// write_file, edit_file, apply_patch, shell, job, grep, glob, list_dir,
// update_plan and ask_user.
//
// Each tool is one Go file and one Markdown file, its description for the
// model. A tool reaches files and commands only through the Environment of its
// call, so that it works the same locally, in a container and on a remote host,
// and stays within what was granted.
//
// All tools are safe for concurrent use. State that outlives a call belongs to
// the toolset, per session: background commands, and the guard of the tools that
// change files, which remembers the files that were read and their state then.
package tools
