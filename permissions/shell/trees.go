package shell

import (
	"path"
	"slices"
	"strings"
)

// trees records the directories that programs read with everything in them, as far as
// their judges do not.
func (in *invocation) trees() {
	read := Access{Kind: Read, Recursive: true, Without: in.patterns("--exclude", "-x")}
	plain := in.plain()
	switch in.name {
	case "tar", "bsdtar", "gtar":
		letters, archives := in.tarMode()
		if !strings.ContainsAny(letters, "cru") || strings.Contains(letters, "x") {
			return
		}
		dirs := in.values("-C", "--directory")
		in.readTrees(slices.DeleteFunc(plain, func(w word) bool {
			return slices.ContainsFunc(slices.Concat(archives, dirs), func(a word) bool { return a.pos == w.pos && a.text == w.text }) || w.pos == in.args[0].pos
		}), dirs, read)
	case "zip":
		if len(plain) > 1 && in.given("-r", "-R", "--recurse-paths") {
			in.readTrees(plain[1:], nil, read)
		}
	case "7z", "7za", "7zr":
		if len(plain) > 2 && (plain[0].text == "a" || plain[0].text == "u") {
			in.readTrees(plain[2:], nil, read)
		}
	case "rsync", "scp":
		if len(plain) > 1 && (in.name == "rsync" || in.given("-r")) {
			in.readTrees(plain[:len(plain)-1], nil, read)
		}
	case "cp":
		if in.copiesTrees() {
			in.readTrees(plain, nil, Access{Kind: Read, Recursive: true})
		}
	case "git":
		if in.given("--no-index") {
			in.readTrees([]word{{value: value{text: "."}, src: "git"}}, nil, read)
		}
	}
}

// readTrees records that trees are read, relative to the first of the directories.
func (in *invocation) readTrees(trees, dirs []word, a Access) {
	for _, w := range trees {
		if len(dirs) > 0 && !strings.HasPrefix(w.text, "/") {
			w.text = strings.TrimSuffix(dirs[0].text, "/") + "/" + w.text
		}
		in.loses(&w, a)
	}
}

// patterns returns the values of options that are known patterns of names.
func (in *invocation) patterns(options ...string) (known []string) {
	for _, v := range in.values(options...) {
		if _, err := path.Match(v.text, ""); v.kind == literal && err == nil && !strings.Contains(v.text, "/") {
			known = append(known, v.text)
		}
	}
	return known
}

// named returns the pattern to which the expression of find limits what it finds; empty
// if it does not.
func named(args []word) (name string) {
	for i, w := range args {
		switch w.text {
		case "-o", "-or", ",", "!", "-not":
			return ""
		case "-name", "-iname":
			if i+1 == len(args) || !args[i+1].exact() {
				return ""
			}
			name = args[i+1].text
		}
	}
	return name
}
