// Package tools holds the built-in tools: read_file, write_file, edit_file,
// shell, grep, glob, list_dir and update_plan.
//
// Each tool is one Go file and one Markdown file, its description for the
// model. A tool reaches files and commands through the Environment of its call
// alone, so that it works the same on this machine, in a container and on a
// remote host, and so that nothing goes around what was granted.
//
// All tools are safe for concurrent use and keep nothing between two calls.
package tools
