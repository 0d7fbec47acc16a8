package tools_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
	"github.com/seed-009c0928/agent/core/tools"
)

const aNotebook = `{
 "cells": [
  {
   "cell_type": "markdown",
   "metadata": {},
   "source": [
    "# Title\n",
    "Some <b>text</b>"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "metadata": {"tags": ["a"]},
   "outputs": [
    {"name": "stdout", "output_type": "stream", "text": ["10%\r100%\n", "done\n"]},
    {"data": {"image/png": "aGVsbG8=", "text/plain": ["<Figure size 640x480>"]}, "output_type": "display_data"},
    {"ename": "ZeroDivisionError", "evalue": "division by zero", "output_type": "error", "traceback": ["\u001b[0;31mTraceback\u001b[0m", "line 1"]}
   ],
   "source": "def f(x):\n    return x / 0\n"
  },
  {
   "cell_type": "code",
   "execution_count": null,
   "metadata": {},
   "outputs": [],
   "source": []
  }
 ],
 "metadata": {"kernelspec": {"language": "python", "name": "python3"}},
 "nbformat": 4,
 "nbformat_minor": 5
}
`

func TestReadNotebook(t *testing.T) {
	where := env.NewMemory("", map[string]string{"n.ipynb": aNotebook, "broken.ipynb": `{"cells": [`, "other.ipynb": `{"worksheets": []}`})
	check(t, tools.ReadFile(), where, args{"file_path": "n.ipynb"}, "", ` 1 | [cell 1: markdown]
 2 | # Title
 3 | Some <b>text</b>
 4 | 
 5 | [cell 2: code]
 6 | def f(x):
 7 |     return x / 0
 8 | [output of cell 2]
 9 | 100%
10 | done
11 | [output of cell 2]
12 | <Figure size 640x480>
13 | (image/png, 10 bytes, not shown)
14 | [output of cell 2]
15 | ZeroDivisionError: division by zero
16 | Traceback
17 | line 1
18 | 
19 | [cell 3: code]
(A notebook with 3 cells, shown as text; edit_file replaces text in a cell.)`)
	checkHas(t, tools.ReadFile(), where, args{"file_path": "n.ipynb", "offset": 6, "limit": 1}, "", "6 | def f(x):\n(lines 6–6 of 19; use offset 7 to continue)")
	checkHas(t, tools.ReadFile(), where, args{"file_path": "broken.ipynb"}, "", `1 | {"cells": [`)
	checkHas(t, tools.ReadFile(), where, args{"file_path": "other.ipynb"}, "", "worksheets")
}

func TestReadNotebookClipsOutput(t *testing.T) {
	long, _ := json.Marshal(strings.Repeat("x", 100_000))
	text := `{"cells": [{"cell_type": "code", "source": "x", "outputs": [{"output_type": "stream", "text": ` + string(long) + `}]}]}`
	where := env.NewMemory("", map[string]string{"n.ipynb": text})
	checkHas(t, tools.ReadFile(), where, args{"file_path": "n.ipynb"}, "", "… [98000 more bytes]")
}

func TestEditNotebook(t *testing.T) {
	edit := func(from, to string, code core.ErrorCode, says string) string {
		t.Helper()
		where := env.NewMemory("", map[string]string{"n.ipynb": aNotebook})
		checkHas(t, tools.EditFile(), where, args{"file_path": "n.ipynb", "old_string": from, "new_string": to}, code, says)
		got := content(t, where, "n.ipynb")
		if !json.Valid([]byte(got)) {
			t.Errorf("the notebook is not valid JSON: %s", got)
		}
		if code != "" && got != aNotebook {
			t.Errorf("a refused edit changed the file: %s", got)
		}
		return got
	}
	got := edit("    return x / 0\n", "    if x < 1:\n        return \"ok\"\n    return 1\n", "", "cell 2: 1 replacement (line 2).")
	want := strings.Replace(aNotebook, `"def f(x):\n    return x / 0\n"`, `[
    "def f(x):\n",
    "    if x < 1:\n",
    "        return \"ok\"\n",
    "    return 1\n"
   ]`, 1)
	if got != want {
		t.Errorf("the notebook is now %s", got)
	}
	if got := edit("# Title", "# Other", "", "cell 1: 1 replacement"); got != strings.Replace(aNotebook, "# Title", "# Other", 1) {
		t.Errorf("the notebook is now %s", got)
	}
	if got := edit(`"nbformat_minor": 5`, `"nbformat_minor": 4`, "", "1 replacement"); got != strings.Replace(aNotebook, `minor": 5`, `minor": 4`, 1) {
		t.Errorf("the notebook is now %s", got)
	}
	edit(`"nbformat": 4,`, `"nbformat": ,`, core.CodeValidation, "would not be valid JSON any more")
	edit("nowhere to be found", "x", core.CodeValidation, "no cell has old_string")
	edit("e", "x", core.CodeValidation, "not unique")

	where := env.NewMemory("", map[string]string{"n.ipynb": aNotebook})
	patch := "*** Begin Patch\n*** Update File: n.ipynb\n@@\n- \"nbformat\": 4,\n+ \"nbformat\": 4\n*** End Patch\n"
	checkHas(t, tools.ApplyPatch(), where, args{"patch": patch}, core.CodeValidation, "would not be valid JSON any more")
}

func FuzzNotebook(f *testing.F) {
	f.Add(aNotebook, "x", "y\"\n")
	f.Add(`{"cells":[{"source":["a"]}]}`, "a", "")
	f.Add(`{"cells":[{"source":"a","source":"b"}]}`, "a", "b")
	f.Fuzz(func(t *testing.T, text, from, to string) {
		where := env.NewMemory("", map[string]string{"n.ipynb": text})
		run(t, tools.ReadFile(), where, args{"file_path": "n.ipynb"})
		run(t, tools.EditFile(), where, args{"file_path": "n.ipynb", "old_string": from, "new_string": to, "replace_all": true})
		if got := content(t, where, "n.ipynb"); json.Valid([]byte(text)) && !json.Valid([]byte(got)) {
			t.Errorf("%q became invalid: %q", text, got)
		}
	})
}
