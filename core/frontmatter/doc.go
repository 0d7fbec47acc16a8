// Package frontmatter reads the YAML at the beginning of Markdown files, as it
// is written in practice: values with an unquoted colon, tabs, none at all.
package frontmatter
