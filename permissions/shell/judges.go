package shell

import (
	"slices"
	"strings"
)

// judgeOf returns the judge of a program whose arguments need more than a table;
// nil for others.
func judgeOf(name string) func(*invocation) {
	switch name {
	case "ls", "dir", "du", "tree":
		return walkNames
	case "grep", "egrep", "fgrep":
		return grep
	case "rg":
		return ripgrep
	case "find":
		return find
	case "fd", "fdfind":
		return fd
	case "diff":
		return diff
	case "date":
		return date
	case "xxd":
		return xxd
	case "strings":
		return stringsIn
	case "ps":
		return ps
	case "sed":
		return sed
	case "awk", "mawk", "gawk":
		return awk
	case "jq":
		return jq
	case "git":
		return git
	case "go":
		return golang
	case "mkdir", "rmdir", "touch", "rm", "mv", "cp", "tee", "truncate":
		return changeFiles
	case "node", "python", "python3", "gcc", "cc", "clang", "make", "docker", "java", "perl", "ruby", "php", "cmake":
		return versionOnly
	}
	return nil
}

var listers = map[string]program{
	"ls":   {operands: names, harmless: true, options: "a A b B c C d F f g G h H i k l L m n N o p q Q r R s S t u U v x X Z 1 all almost-all author escape block-size= ignore-backups color? directory classify? file-type format= full-time group-directories-first no-group human-readable si inode ignore= hide= kibibytes dereference indicator-style= literal hide-control-chars show-control-chars quote-name quoting-style= reverse recursive size sort= time= time-style= width= zero" + help},
	"dir":  {operands: names, options: "a A l R 1"},
	"du":   {operands: names, harmless: true, options: "a b c d= h H k l m s S x t= 0 all apparent-size bytes total max-depth= human-readable si separate-dirs summarize one-file-system threshold= block-size= time? exclude= null" + help, refused: map[string]string{"files0-from": readsList, "X": readsList, "exclude-from": readsList, "L": followsLink}},
	"tree": {operands: names, options: "a d f x L= P= I= s h p u g D F r t c U n C A q N Q i v J X dirsfirst filesfirst noreport prune sort= matchdirs ignore-case gitignore filelimit= charset= du si timefmt= inodes device" + help, refused: map[string]string{"o": writesFile, "R": "writes an HTML file in each directory", "fromfile": readsList, "l": followsLink, "gitfile": "reads a file that is not checked", "infofile": "reads a file that is not checked"}},
}

// walkNames judges programs that list directories.
func walkNames(in *invocation) {
	p := listers[in.name]
	in.parse(&p)
	a := Access{Kind: List, Recursive: in.name == "du" || in.name == "tree" || in.has("R", "recursive") || in.maybeOptions()}
	a.SkipsHidden = in.name == "tree" && !in.has("a")
	in.each(in.operands, a)
}

// maybeOptions reports whether an operand may be an option.
func (in *invocation) maybeOptions() bool {
	return slices.ContainsFunc(in.operands, func(o word) bool { return !o.exact() && o.maybeOption() })
}

// each records an access to each operand, or to the directory if there is none.
func (in *invocation) each(operands []word, a Access) {
	if len(operands) == 0 {
		in.here(a)
	}
	for i := range operands {
		in.reach(&operands[i], a)
	}
}

// A file whose name is an option can at worst make grep recursive.
var grepOptions = program{
	harmless: true, options: "# A= B= C= D= d= e= f=< m= E F G P i y v w x c l L o q s b H h n T u U z Z a I r context= after-context= before-context= devices= directories= regexp= file=< max-count= extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case invert-match word-regexp line-regexp count color? colour? files-with-matches files-without-match only-matching quiet silent no-messages byte-offset with-filename no-filename label= line-number initial-tab null null-data text binary-files= exclude= exclude-dir= include= exclude-from=< recursive line-buffered binary" + help,
	refused: map[string]string{"R": followsLink, "dereference-recursive": followsLink},
}

func grep(in *invocation) {
	in.parse(&grepOptions)
	paths := in.withoutPattern("e", "regexp", "f", "file")
	recursive := in.has("r", "recursive")
	if d := in.option("d", "directories"); d != nil && d.value != nil && (!d.value.exact() || d.value.text == "recurse") {
		recursive = true
	}
	recursive = recursive || in.maybeOptions()
	if recursive || len(paths) > 0 {
		a := Access{Kind: Read, Recursive: recursive, Without: in.patterns("--exclude", "--exclude-dir")}
		if include := in.values("--include"); len(include) == 1 && include[0].kind != unknown && !strings.Contains(include[0].text, `\`) {
			a.Name = include[0].text
		}
		in.each(paths, a)
	}
	if slices.ContainsFunc(paths, func(p word) bool { return p.kind == glob && strings.Trim(p.text, "*?") == "" }) {
		in.here(Access{Kind: Read, Recursive: true}) // the only file may be named -r
	}
}

// withoutPattern returns the operands without the pattern, the first one unless
// an option sets it.
func (in *invocation) withoutPattern(given ...string) []word {
	if in.has(given...) || len(in.operands) == 0 {
		return in.operands
	}
	if pattern := &in.operands[0]; pattern.many {
		in.unknown(pattern.src + " may expand to a pattern and files to search")
	}
	return in.operands[1:]
}

var ripgrepOptions = program{
	options: "# A= B= C= e= f=< g= t= T= m= M= E= d= j= r= i v w x c l o q s S n N H I p a u F P U 0 . b after-context= before-context= context= regexp= file=< glob= iglob= type= type-not= type-add= type-list max-count= max-columns= max-columns-preview max-depth= maxdepth= max-filesize= encoding= threads= replace= ignore-case invert-match word-regexp line-regexp count count-matches files-with-matches files-without-match files only-matching quiet no-messages smart-case case-sensitive line-number no-line-number with-filename no-filename heading no-heading pretty text unrestricted fixed-strings pcre2 multiline multiline-dotall null byte-offset column no-column color= colors= sort= sortr= stats json vimgrep trim passthru hidden no-hidden no-ignore no-ignore-vcs no-ignore-parent no-ignore-dot no-ignore-global no-ignore-exclude ignore-file=< one-file-system no-config line-buffered block-buffered context-separator= no-context-separator engine= auto-hybrid-regex crlf mmap no-mmap path-separator= include-zero debug no-follow" + help,
	refused: map[string]string{"pre": runsProgram, "hostname-bin": runsProgram, "L": followsLink, "follow": followsLink, "z": runsProgram, "search-zip": runsProgram},
}

func ripgrep(in *invocation) {
	in.parse(&ripgrepOptions)
	in.setEnv("RIPGREP_CONFIG_PATH=")
	unrestricted := 0
	for _, o := range in.options {
		if o.name == "u" || o.name == "unrestricted" {
			unrestricted++
		}
	}
	a := Access{Kind: Read, Recursive: true, SkipsHidden: unrestricted < 2 && !in.has("hidden", ".")}
	paths := in.operands
	switch {
	case in.has("type-list"):
		return
	case in.has("files"):
		a.Kind = List
	default:
		paths = in.withoutPattern("e", "regexp", "f", "file")
	}
	for _, o := range in.options {
		if strings.HasSuffix(o.name, "glob") || o.name == "g" {
			a.SkipsHidden = a.SkipsHidden && !showsHidden(o.value)
		}
	}
	in.each(paths, a)
}

// showsHidden reports whether a glob of rg could include hidden files. Globs
// override what hides them, but a plain *.go matches no name like .env.
func showsHidden(glob *word) bool {
	if !glob.exact() {
		return true
	}
	ext, found := strings.CutPrefix(glob.text[strings.LastIndexByte(glob.text, '/')+1:], "*.")
	for e := range strings.SplitSeq(strings.Trim(ext, "{}"), ",") {
		switch e {
		case "go", "mod", "js", "jsx", "ts", "tsx", "mjs", "cjs", "py", "rs", "c", "h", "cc", "hh", "cpp", "hpp", "java", "kt", "rb", "php", "cs",
			"swift", "scala", "html", "css", "scss", "sql", "proto", "md", "vue", "svelte", "lua", "zig":
		default:
			found = false
		}
	}
	return !found && !strings.HasPrefix(glob.text, "!")
}

var fdOptions = program{
	options: "# H I u s i g F a l d= t= e= E= S= o= c= j= 0 p q 1 hidden no-hidden no-ignore no-ignore-vcs no-ignore-parent unrestricted case-sensitive ignore-case glob regex fixed-strings absolute-path relative-path list-details max-depth= min-depth= exact-depth= type= extension= exclude= size= owner= color= threads= print0 full-path quiet max-results= changed-within= changed-before= prune strip-cwd-prefix and= one-file-system show-errors" + help,
	refused: map[string]string{"x": runsProgram, "exec": runsProgram, "X": runsProgram, "exec-batch": runsProgram, "L": followsLink, "follow": followsLink, "base-directory": "searches in another directory", "C": "searches in another directory", "search-path": "searches in another directory", "ignore-file": "reads a file that is not checked"},
}

func fd(in *invocation) {
	in.parse(&fdOptions)
	if in.has("l", "list-details") {
		in.unknown("fd -l runs ls on what it finds")
	}
	paths := in.withoutPattern()
	in.each(paths, Access{Kind: List, Recursive: true, SkipsHidden: !in.has("H", "hidden", "u", "unrestricted")})
}

var diffOptions = program{
	options: "# q s c C= u U= e n y W= p F= i E Z b w B I= a d t T r N x= brief report-identical-files context? unified? ed rcs normal side-by-side width= left-column suppress-common-lines show-c-function show-function-line= label= L= expand-tabs initial-tab recursive no-dereference new-file unidirectional-new-file ignore-file-name-case exclude= starting-file= ignore-case ignore-tab-expansion ignore-trailing-space ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines= text strip-trailing-cr minimal speed-large-files color? from-file=< to-file=<" + help,
	refused: map[string]string{"l": "runs pr", "paginate": "runs pr", "X": readsList, "exclude-from": readsList},
}

func diff(in *invocation) {
	in.parse(&diffOptions)
	recursive := in.has("r", "recursive")
	if recursive && !in.has("no-dereference") {
		in.unknown("diff -r " + followsLink + "; diff -r --no-dereference does not")
	}
	in.each(in.operands, Access{Kind: Read, Recursive: recursive})
}

var dateOptions = program{
	options: "u R I? d= r=. universal utc date= reference=. rfc-email rfc-3339= iso-8601? rfc-2822" + help,
	refused: map[string]string{"s": "sets the clock", "set": "sets the clock", "f": "reads dates from a file, and shows its lines", "file": "reads dates from a file, and shows its lines", "j": "is not known to be harmless"},
}

func date(in *invocation) {
	in.parse(&dateOptions)
	for i := range in.operands {
		if o := &in.operands[i]; o.many || !strings.HasPrefix(o.text, "+") || o.kind == glob {
			in.unknown("may set the clock")
		}
	}
}

var xxdOptions = program{
	options: "a b c= C e E g= i l= n= o= s= u p ps plain cols= groupsize= len= seek= bits include postscript autoskip capitalize uppercase upper", single: true,
	refused: map[string]string{"r": "writes a file from a dump"},
}

func xxd(in *invocation) {
	in.parse(&xxdOptions)
	if len(in.operands) > 1 || len(in.operands) == 1 && in.operands[0].many {
		in.unknown("writes to its second operand")
	}
	in.each(in.operands, Access{Kind: Read})
}

// versionOnly judges programs that may only print their version.
func versionOnly(in *invocation) {
	if len(in.args) == 1 && in.args[0].exact() {
		switch in.args[0].text {
		case "--version", "-version":
			return
		case "-V":
			if in.name == "python" || in.name == "python3" {
				return
			}
		case "-v":
			if in.name == "node" || in.name == "make" || in.name == "perl" || in.name == "php" {
				return
			}
		}
	}
	in.unknown(in.name + " runs programs")
}

var stringsOptions = program{options: "a d f n= t= o e= # all data print-file-name bytes= radix= encoding=" + help}

// stringsIn judges strings, which reads arguments from @file.
func stringsIn(in *invocation) {
	in.parse(&stringsOptions)
	for i := range in.operands {
		if o := &in.operands[i]; strings.HasPrefix(o.text, "@") || !o.exact() && o.maybeOption() {
			in.unknown("strings " + o.src + " may read files named in another file")
		}
		in.touch(Read, &in.operands[i], false)
	}
}

var psOptions = program{options: "e f F A a u= p= o= C= l j H w ww forest sort= no-headers headers pid= ppid= user= format=" + help}

// ps judges ps, which can show the environment of processes.
func ps(in *invocation) {
	in.parse(&psOptions)
	for i := range in.operands {
		if o := &in.operands[i]; !o.exact() || strings.Trim(o.text, "auxwfljr0123456789,") != "" {
			in.unknown("ps " + o.src + " may show the environment of processes")
		}
	}
}

var changers = map[string]program{
	"mkdir":    {options: "p v parents verbose m= mode=" + help},
	"rmdir":    {options: "p v parents verbose ignore-fail-on-non-empty" + help},
	"touch":    {options: "a c m d= t= r=. no-create date= time= reference=." + help},
	"rm":       {options: "f i I r R d v force interactive? recursive dir verbose one-file-system preserve-root?" + help},
	"mv":       {options: "f i n u v T force interactive no-clobber update verbose no-target-directory" + help},
	"cp":       {options: "f i n u v T r R p force interactive no-clobber update verbose no-target-directory recursive preserve?" + help},
	"tee":      {options: "a i p append ignore-interrupts" + help},
	"truncate": {options: "c s= no-create size=" + help},
}

// changeFiles judges programs that change only the files that they name.
func changeFiles(in *invocation) {
	p := changers[in.name]
	in.parse(&p)
	recursive := in.has("r", "R", "recursive")
	for i := range in.operands {
		o := &in.operands[i]
		last := i == len(in.operands)-1
		switch {
		case in.name == "rm" || in.name == "rmdir":
			if o.kind == unknown {
				in.here(Access{Kind: List, Recursive: true, Loss: LosesSome})
			}
			in.reach(o, Access{Kind: Delete, Recursive: recursive, Loss: LosesAll})
		case in.name == "mv" && !last:
			in.touch(Read, o, true)
			in.touch(Delete, o, true)
		case in.name == "cp" && !last:
			in.touch(Read, o, recursive)
		case in.name == "mv" || in.name == "cp":
			in.touch(Write, o, true) // may be a directory
			if !in.has("n", "no-clobber") {
				in.replaces(o, in.operands[:i], in.copiesTrees())
			}
		case in.name == "truncate" || in.name == "tee" && !in.has("a", "append"):
			in.reach(o, Access{Kind: Write, Loss: LosesAll})
		default:
			in.touch(Write, o, false)
		}
	}
	in.lower(Writes, "changes files")
}
