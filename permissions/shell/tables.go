package shell

// operands is what a program does with its operands.
type operands uint8

const (
	nothing operands = iota // takes none
	anyText                 // they are not paths
	names                   // reads metadata: names, sizes, times
	files                   // reads the content
)

// program describes a program that changes nothing when used with these options
// only.
type program struct {
	operands operands
	// options are the harmless options, in the notation of options.go.
	options string
	// harmless says that all other options are harmless, too, so that a file that
	// * matches may be named like an option, and operands that are not paths may
	// have any value. At worst it reveals whether files exist, or their size.
	harmless bool
	// single says that long options have one dash.
	single bool
	// first says that options end at the first operand.
	first bool
	// most is the maximum number of operands, 0 for any number; beyond says what
	// more of them would do.
	most   int
	beyond string
	// refused says why some of the other options are not harmless.
	refused map[string]string
}

const help = " help version"

// Common reasons to refuse options.
const (
	runsProgram = "runs a program"
	writesFile  = "writes a file"
	readsList   = "reads files listed in another file"
	followsLink = "follows symbolic links to paths not on the command line"
)

// programs are those that change nothing and need no function in judgeOf. Options
// that mean something else to GNU and BSD programs are left out if it matters.
var programs = map[string]program{
	// Programs that print their arguments or system information.
	"sleep":    {operands: anyText, harmless: true, options: help},
	"seq":      {operands: anyText, harmless: true, options: "f= s= w format= separator= equal-width #" + help},
	"basename": {operands: anyText, harmless: true, options: "a s= z multiple suffix= zero" + help},
	"dirname":  {operands: anyText, harmless: true, options: "z zero" + help},
	"expr":     {operands: anyText, harmless: true, options: help},
	"factor":   {operands: anyText, harmless: true, options: help},
	"yes":      {operands: anyText, harmless: true, options: help},
	"echo":     {operands: anyText, harmless: true, options: "n e E", first: true},
	"uname":    {options: "a s n r v m p i o all kernel-name nodename kernel-release kernel-version machine processor hardware-platform operating-system" + help},
	"arch":     {options: help},
	"nproc":    {options: "all ignore=" + help},
	"whoami":   {options: help},
	"logname":  {options: help},
	"id":       {operands: anyText, options: "a g G n r u z group groups name real user zero" + help},
	"groups":   {operands: anyText, options: help},
	"users":    {options: help},
	"tty":      {options: "s silent quiet" + help},
	"uptime":   {options: "p s pretty since" + help},
	"free":     {options: "b k m g h t w human mega giga kibi mebi gibi total wide" + help},
	"lscpu":    {options: "a b c e? J p? x all online offline extended? json parse?" + help},
	"hostname": {options: "f s i I d A a y long short ip-address all-ip-addresses domain all-fqdns alias" + help, refused: map[string]string{"F": "sets the host name", "b": "sets the host name"}},
	"locale":   {operands: anyText, options: "a m c k all-locales charmaps category-name keyword-name" + help},
	"getconf":  {operands: anyText, options: "a"},
	"cal":      {operands: anyText, options: "1 3 s m j y" + help},
	"which":    {operands: anyText, options: "a s all" + help},
	"printenv": {operands: anyText, options: "0 null" + help},
	"pgrep":    {operands: anyText, most: 1, beyond: "has unsupported arguments", options: "f l a x n o u= c i list-full list-name full exact newest oldest count ignore-case" + help},
	"df":       {operands: names, options: "a B= h H i k l P T t= x= m all block-size= human-readable si inodes local portability print-type type= exclude-type= total output?" + help},
	"lsblk":    {options: "a b d f l m n o= p t J" + help},
	"tput":     {operands: anyText, options: "", most: 1, beyond: "may set up the terminal"},
	"cksum":    {operands: files, options: "a= algorithm= untagged" + help},

	// Programs that read files.
	"cat":       {operands: files, harmless: true, options: "A b e E n s t T u v show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting" + help},
	"tac":       {operands: files, harmless: true, options: "b r s= before regex separator=" + help},
	"head":      {operands: files, harmless: true, options: "# c= n= q v z bytes= lines= quiet silent verbose zero-terminated" + help},
	"tail":      {operands: files, harmless: true, options: "# c= n= q v z f F s= bytes= lines= quiet silent verbose zero-terminated follow? retry pid= sleep-interval= max-unchanged-stats=" + help},
	"nl":        {operands: files, harmless: true, options: "b= d= f= h= i= l= n= p s= v= w= body-numbering= number-format= number-separator= number-width= starting-line-number=" + help},
	"rev":       {operands: files, harmless: true, options: help},
	"wc":        {operands: files, harmless: true, options: "c m l L w bytes chars lines max-line-length words total=" + help, refused: map[string]string{"files0-from": readsList}},
	"cut":       {operands: files, harmless: true, options: "b= c= d= f= n s z bytes= characters= delimiter= fields= complement only-delimited output-delimiter= zero-terminated" + help},
	"paste":     {operands: files, harmless: true, options: "d= s z delimiters= serial zero-terminated" + help},
	"join":      {operands: files, harmless: true, options: "a= e= i j= o= t= v= 1= 2= z ignore-case check-order nocheck-order header zero-terminated" + help},
	"comm":      {operands: files, harmless: true, options: "1 2 3 z check-order nocheck-order output-delimiter= total zero-terminated" + help},
	"fold":      {operands: files, harmless: true, options: "# b s w= bytes spaces width=" + help},
	"fmt":       {operands: files, harmless: true, options: "# c p= s t u w= g= crown-margin prefix= split-only tagged-paragraph uniform-spacing width= goal=" + help},
	"expand":    {operands: files, harmless: true, options: "i t= initial tabs=" + help},
	"unexpand":  {operands: files, harmless: true, options: "a t= all first-only tabs=" + help},
	"column":    {operands: files, harmless: true, options: "t s= o= c= n e x J N= R= H= table separator= output-separator= table-columns= json" + help},
	"od":        {operands: files, harmless: true, options: "A= j= N= S? t= v w? a b c d f i l o s x address-radix= skip-bytes= read-bytes= format= output-duplicates width?" + help},
	"hexdump":   {operands: files, options: "b c C d e= n= o s= v x canonical length= skip=" + help, refused: map[string]string{"f": "reads a file that is not checked"}},
	"hd":        {operands: files, options: "n= s= v"},
	"base64":    {operands: files, options: "d i w= decode ignore-garbage wrap=" + help, refused: map[string]string{"o": writesFile, "output": writesFile}},
	"base32":    {operands: files, options: "d i w= decode ignore-garbage wrap=" + help},
	"md5sum":    {operands: files, harmless: true, options: "b t z tag binary text zero" + help, refused: map[string]string{"c": readsList, "check": readsList}},
	"sha1sum":   {operands: files, harmless: true, options: "b t z tag binary text zero" + help, refused: map[string]string{"c": readsList, "check": readsList}},
	"sha256sum": {operands: files, harmless: true, options: "b t z tag binary text zero" + help, refused: map[string]string{"c": readsList, "check": readsList}},
	"sha512sum": {operands: files, harmless: true, options: "b t z tag binary text zero" + help, refused: map[string]string{"c": readsList, "check": readsList}},
	"b2sum":     {operands: files, harmless: true, options: "b t z l= tag binary text zero" + help, refused: map[string]string{"c": readsList, "check": readsList}},
	"shasum":    {operands: files, harmless: true, options: "a= b t" + help, refused: map[string]string{"c": readsList, "check": readsList}},
	"sum":       {operands: files, options: "r s sysv" + help},
	"cmp":       {operands: files, options: "b i= l n= s print-bytes ignore-initial= verbose bytes= quiet silent" + help},
	"tsort":     {operands: files, options: help},
	"tr":        {operands: anyText, harmless: true, options: "c C d s t complement delete squeeze-repeats truncate-set1" + help},
	"iconv":     {operands: files, options: "f= t= l c s from-code= to-code= list silent" + help, refused: map[string]string{"o": writesFile, "output": writesFile}},
	"uniq":      {operands: files, most: 1, beyond: "writes to its second operand", options: "c d D i u z f= s= w= count repeated all-repeated? group? ignore-case unique zero-terminated skip-fields= skip-chars= check-chars=" + help},
	"sort": {
		operands: files, options: "b d f g h i M n R r V c C m s u z k= t= S= ignore-leading-blanks dictionary-order ignore-case general-numeric-sort human-numeric-sort ignore-nonprinting month-sort numeric-sort reverse version-sort sort= check? merge stable unique zero-terminated key= field-separator= buffer-size= parallel= debug" + help,
		refused: map[string]string{"o": writesFile, "output": writesFile, "compress-program": runsProgram, "files0-from": readsList, "T": "writes temporary files elsewhere", "temporary-directory": "writes temporary files elsewhere", "random-source": "reads a file that is not checked"},
	},
	"shuf": {operands: files, options: "e i= n= r z echo input-range= head-count= repeat zero-terminated" + help, refused: map[string]string{"o": writesFile, "output": writesFile}},
	"file": {
		operands: files, options: "b i k L h N n p r s 0 e= F= brief mime mime-type mime-encoding keep-going dereference no-dereference no-pad print0 exclude= extension" + help,
		refused: map[string]string{"C": writesFile, "compile": writesFile, "m": "reads rules from a file", "magic-file": "reads rules from a file", "f": readsList, "files-from": readsList, "z": runsProgram, "Z": runsProgram, "uncompress": runsProgram},
	},
	"gofmt": {operands: files, options: "l s e d", single: true, refused: map[string]string{"w": writesFile, "cpuprofile": writesFile}},

	// Programs that read metadata.
	"readlink": {operands: names, options: "f e m n q s v z canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero" + help},
	"realpath": {operands: names, options: "e m L P q s z relative-to=. relative-base=. canonicalize-existing canonicalize-missing logical physical quiet strip no-symlinks zero" + help},
	"stat":     {operands: names, harmless: true, options: "L f t c= printf= format= dereference file-system terse" + help},
}
