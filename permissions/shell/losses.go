package shell

import (
	"path"
	"slices"
	"strings"
)

// editors are programs that change the files that they are given, with the options
// that make them do so, separated by spaces; without options, they always do.
var editors = map[string]string{
	"sed": "-i --in-place", "gsed": "-i --in-place", "perl": "-i", "ruby": "-i", "awk": "inplace", "gawk": "inplace", "yq": "-i --inplace",
	"clang-format": "-i", "autopep8": "-i --in-place", "ed": "", "red": "", "ex": "", "vi": "", "vim": "", "nvim": "", "sponge": "", "dos2unix": "", "unix2dos": "",
	"shred": "", "unlink": "",
}

// outputs are the options of programs that name a file to write.
var outputs = map[string]string{
	"sort": "-o --output", "gsort": "-o --output", "shuf": "-o --output", "curl": "-o --output", "wget": "-O --output-document -o --output-file", "dd": "of", "openssl": "-out -keyout",
	"gpg": "-o --output", "gpg2": "-o --output", "pandoc": "-o --output", "iconv": "-o --output", "git": "--output", "patch": "-o --output",
}

// loses records a loss at the path that a word names, if it is known.
func (in *invocation) loses(w *word, a Access) {
	a.Text, a.Offset = w.src, w.pos
	if accesses, ok := in.accesses(in.st, &w.value, a); ok {
		in.cmd.Accesses = append(in.cmd.Accesses, accesses...)
	}
}

// replaces records that a command replaces a file, or those in a directory with the
// names of what it copies or moves there.
func (in *invocation) replaces(to *word, sources []word, recursive bool) {
	in.loses(to, Access{Kind: List, Loss: LosesAll})
	for i := range sources {
		s := &sources[i]
		if !s.exact() || !to.exact() {
			continue
		}
		inside := *to
		inside.text = strings.TrimSuffix(to.text, "/") + "/" + path.Base(s.text)
		in.loses(&inside, Access{Kind: List, Loss: LosesAll})
		if from, ok := in.accesses(in.st, &s.value, Access{}); ok && recursive && len(from) == 1 {
			a := Access{Kind: List, Loss: LosesAll, From: from[0].Path}
			in.loses(to, a)
			in.loses(&inside, a)
		}
	}
}

// copiesTrees reports whether cp copies directories.
func (in *invocation) copiesTrees() bool {
	return in.name == "cp" && in.given("-r", "-R", "-a", "--recursive", "--archive")
}

// losses records the files that programs change, remove or replace, as far as their
// judges do not.
func (in *invocation) losses() {
	if options, known := editors[in.name]; known && (options == "" || in.given(strings.Fields(options)...)) {
		in.edits()
	}
	for _, option := range strings.Fields(outputs[in.name]) {
		for _, w := range in.values(option) {
			in.loses(&w, Access{Kind: List, Loss: LosesAll})
		}
	}
	plain := in.plain()
	last := len(plain) - 1
	switch in.name {
	case "cp", "mv", "install":
		targets := in.values("-t", "--target-directory")
		for i := range targets {
			sources := slices.DeleteFunc(slices.Clone(plain), func(w word) bool { return w.pos == targets[i].pos })
			in.replaces(&targets[i], sources, in.copiesTrees())
		}
		if last > 0 && in.name == "install" {
			in.replaces(&plain[last], plain[:last], false)
		}
	case "ln", "scp":
		if last > 0 && (in.name == "scp" || in.given("-f", "--force")) {
			in.replaces(&plain[last], plain[:last], in.name == "scp")
		}
	case "rsync":
		in.syncs(plain)
	case "tar", "bsdtar", "gtar", "unzip", "7z", "7za", "7zr", "cpio":
		in.unpacks(plain)
	case "patch":
		in.patches(plain)
	case "uniq", "xxd":
		if last == 1 {
			in.loses(&plain[1], Access{Kind: List, Loss: LosesAll})
		}
	case "ffmpeg", "convert", "magick":
		if last > 0 {
			in.loses(&plain[last], Access{Kind: List, Loss: LosesAll})
		}
	}
}

// plain returns the arguments that are no options.
func (in *invocation) plain() []word {
	return slices.DeleteFunc(slices.Clone(in.args), func(w word) bool { return strings.HasPrefix(w.text, "-") && w.text != "-" })
}

// given reports whether one of the options is among the arguments, also together
// with others. A name without dashes is an argument itself.
func (in *invocation) given(options ...string) bool {
	return slices.ContainsFunc(in.args, func(w word) bool {
		name, _, _ := strings.Cut(w.text, "=")
		return slices.ContainsFunc(options, func(o string) bool {
			return name == o || len(o) == 2 && isCluster(w.text, o[1:]) && !strings.ContainsAny(w.text[1:2], "MmI")
		})
	})
}

// values returns the values of an option: -o X, -oX, -so X, --output X, --output=X.
func (in *invocation) values(options ...string) (found []word) {
	for i, w := range in.args {
		for _, o := range options {
			value, joined := strings.CutPrefix(w.text, o+"=")
			if !joined && len(o) == 2 && len(w.text) > 2 {
				value, joined = strings.CutPrefix(w.text, o)
			}
			switch {
			case joined:
				w.text = value
				found = append(found, w)
			case (w.text == o || len(o) == 2 && isCluster(w.text, o[1:]) && strings.HasSuffix(w.text, o[1:])) && i+1 < len(in.args):
				found = append(found, in.args[i+1])
			}
		}
	}
	return found
}

// edits records that the files among the arguments are changed in place. If they are
// only known at run time, those that git knows count: a snapshot has the others.
func (in *invocation) edits() {
	for i := range in.args {
		w := &in.args[i]
		switch {
		case w.kind == unknown || w.kind == below:
			in.here(Access{Kind: List, Recursive: true, Loss: LosesModified})
		case !strings.HasPrefix(w.text, "-"):
			in.loses(w, Access{Kind: List, Loss: LosesAll})
		}
	}
}

// syncs records what rsync replaces and deletes.
func (in *invocation) syncs(plain []word) {
	last := len(plain) - 1
	if last < 1 || in.given("--dry-run", "--ignore-existing", "-n") {
		return
	}
	to := &plain[last]
	for i := range plain[:last] {
		target := *to
		if !strings.HasSuffix(plain[i].text, "/") {
			target.text = strings.TrimSuffix(to.text, "/") + "/" + path.Base(plain[i].text)
		}
		in.loses(&target, Access{Kind: List, Loss: LosesAll})
		if from, ok := in.accesses(in.st, &plain[i].value, Access{}); ok && len(from) == 1 {
			in.loses(&target, Access{Kind: List, Loss: LosesAll, From: from[0].Path})
		}
	}
	if slices.ContainsFunc(in.args, func(w word) bool { return strings.HasPrefix(w.text, "--del") }) {
		in.loses(to, Access{Kind: List, Recursive: true, Loss: LosesSome})
	}
}

// unpacks records what the members of an archive replace.
func (in *invocation) unpacks(plain []word) {
	a := Access{Kind: List, Recursive: true, Loss: LosesSome, Unpacked: true}
	dirs := in.values("-C", "--directory")
	var archives []word
	switch in.name {
	case "unzip":
		if !in.given("-o") || in.given("-l", "-p", "-t", "-n") {
			return
		}
		dirs, archives = in.values("-d"), plain
	case "cpio":
		if !in.given("-i", "--extract") || !in.given("-u", "--unconditional") {
			return
		}
		dirs, archives = in.values("-D", "--directory"), in.values("-F", "-I", "--file")
	case "7z", "7za", "7zr":
		if len(plain) < 2 || plain[0].text != "x" && plain[0].text != "e" {
			return
		}
		dirs, archives = in.values("-o"), plain[1:]
	default:
		var letters string
		letters, archives = in.tarMode()
		if strings.Contains(letters, "c") {
			if len(archives) > 0 {
				in.loses(&archives[0], Access{Kind: List, Loss: LosesAll})
			}
		}
		if !strings.Contains(letters, "x") || strings.ContainsAny(letters, "kO") || in.given("--keep-old-files", "--skip-old-files", "--to-stdout") {
			return
		}
		a.Strip = slices.ContainsFunc(in.args, func(w word) bool {
			return strings.HasPrefix(w.text, "--strip") || strings.HasPrefix(w.text, "--transform")
		})
	}
	if len(archives) > 0 {
		if from, ok := in.accesses(in.st, &archives[0].value, Access{}); ok && len(from) == 1 {
			a.From = from[0].Path
		}
	}
	if len(dirs) == 0 {
		in.here(a)
	}
	for i := range dirs {
		in.loses(&dirs[i], a)
	}
}

// tarMode returns the letters of tar's options, and its archive if that is a file.
func (in *invocation) tarMode() (all string, archives []word) {
	archives = in.values("--file")
	for i, w := range in.args {
		letters, dashed := strings.CutPrefix(w.text, "-")
		switch {
		case w.text == "--extract" || w.text == "--get":
			all += "x"
		case w.text == "--create":
			all += "c"
		case strings.HasPrefix(w.text, "--") || !dashed && i > 0 || letters == "":
		default:
			var name string
			var file bool
			if letters, name, file = strings.Cut(letters, "f"); file {
				w.text = name
				if name == "" || !dashed {
					letters += name
					w = in.args[min(i+1, len(in.args)-1)]
				}
				archives = append(archives, w)
			}
			all += letters
		}
	}
	return all, slices.DeleteFunc(archives, func(w word) bool { return w.text == "-" })
}

// patches records what patch and git apply change: the files that they are given, or
// those that a patch names.
func (in *invocation) patches(plain []word) {
	if in.given("--dry-run", "--check", "--stat", "--numstat", "--summary", "--cached") {
		return
	}
	a := Access{Kind: List, Recursive: true, Loss: LosesModified, Unpacked: true, Strip: true}
	from := plain
	if in.name == "patch" {
		if len(plain) > 0 {
			in.loses(&plain[0], Access{Kind: List, Loss: LosesAll})
		}
		from = in.values("-i", "--input")
	}
	for i := range from {
		if at, ok := in.accesses(in.st, &from[i].value, Access{}); ok && len(at) == 1 {
			a.From = at[0].Path
			in.here(a)
		}
	}
	if len(from) == 0 && (in.name != "patch" || len(plain) == 0) {
		in.here(a)
	}
}
