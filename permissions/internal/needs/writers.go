package needs

import (
	"path"
	"slices"
	"strings"
)

// writers are programs that create or replace files in the workspace, which some
// sandbox levels do not allow beside protected files. Those whose accesses are
// analyzed are missing.
var writers = table{
	"chmod chown chgrp setfacl": func(c *command) { c.add(Modes, "", "changes modes or owners of files") },
	"sed gsed perl": func(c *command) {
		if slices.ContainsFunc(c.args, func(a string) bool {
			return strings.HasPrefix(a, "-i") || strings.HasPrefix(a, "--in-place") || strings.HasPrefix(a, "-pi")
		}) {
			c.replace(c.last(), "replaces files")
		}
	},
	"tar bsdtar gtar": func(c *command) {
		file := c.value("-f", "--file")
		for i, a := range c.args[:max(0, len(c.args)-1)] {
			if i == 0 && !strings.HasPrefix(a, "--") && strings.HasSuffix(a, "f") {
				file = c.args[i+1]
			}
		}
		if len(c.args) > 0 && (strings.Contains(c.args[0], "x") || c.has("--extract")) && c.value("-C", "--directory") == "" {
			c.replace("files", "extracts files")
		} else if len(c.args) > 0 && (strings.Contains(c.args[0], "c") || c.has("--create")) {
			c.replace(file, "writes the archive")
		}
	},
	"zip 7z":                       func(c *command) { c.replace(c.sub(""), "writes the archive") },
	"unzip":                        func(c *command) { c.replace("files", "extracts files") },
	"gzip gunzip bzip2 xz zstd":    func(c *command) { c.replace(c.last(), "replaces files") },
	"ed ex vi vim nvim nano emacs": func(c *command) { c.replace(c.last(), "replaces the file") },
	"patch":                        func(c *command) { c.replace("files", "replaces files") },
	"gofmt goimports gofumpt": func(c *command) {
		if c.has("-w") {
			c.replace(c.last(), "replaces files")
		}
	},
	"prettier eslint black isort rustfmt clang-format": func(c *command) { c.replace(c.last(), "replaces files") },
	"split csplit": func(c *command) { c.replace("files", "writes files") },
}

// replace adds a file that the command creates or replaces.
func (c *command) replace(name, why string) {
	if name != "" {
		c.add(Create, c.abs(name), why)
	}
}

// last returns the last word that is not an option.
func (c *command) last() string {
	for _, a := range slices.Backward(c.args) {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}

// downloads adds the file that curl or wget writes.
func (c *command) downloads(urls []string) {
	switch {
	case c.value("-o", "--output", "-O", "--output-document") != "" && (c.name == "wget" || c.value("-o", "--output") != ""):
		c.create(c.value("-o", "--output", "-O", "--output-document"), "writes the file")
	case len(urls) > 0 && (c.name == "wget" || c.name == "curl" && c.has("-O", "--remote-name", "-LO", "-OL", "-sO", "-fsSLO")):
		c.create(path.Base(urls[0]), "writes the file")
	}
}
