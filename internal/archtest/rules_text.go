package archtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

const (
	maxLines       = 450 // of a shipped Go file
	maxReadmeLines = 150
)

// long lists the shipped files that may exceed maxLines, each with the reason.
var long = map[string]string{}

// checkLength keeps shipped files to what one sitting can read. Generated ones are not read.
func checkLength(files []goFile) []Finding {
	var found []Finding
	for _, f := range files {
		if f.test || f.lines <= maxLines || long[f.path] != "" || generated(f) {
			continue
		}
		found = append(found, Finding{f.path, "length", fmt.Sprintf("%d lines, at most %d: is it one idea? Split it, or list it with a reason in internal/archtest/rules_text.go", f.lines, maxLines)})
	}
	return found
}

func generated(f goFile) bool {
	for _, g := range f.ast.Comments {
		if g.Pos() > f.ast.Package {
			break
		}
		for _, c := range g.List {
			if generatedLine.MatchString(c.Text) {
				return true
			}
		}
	}
	return false
}

var generatedLine = regexp.MustCompile(`^// Code generated .* DO NOT EDIT\.$`)

// absent are references to what a user's checkout does not have. The patterns are written so that they do not match
// themselves.
var absent = []struct {
	pattern *regexp.Regexp
	except  func(path string) bool
	why     string
}{
	{regexp.MustCompile(`/[w]ork/`), never, "an absolute path of some machine"},
	{regexp.MustCompile(`\.\./[s]hared`), mayLookOutside, "a folder outside the repository"},
	{regexp.MustCompile(`\b[D]ESIGN\b|\b(?:[C]ASES|[F]ACTS|[S]TYLE)\.md\b`), never, "a document that is not in the repository"},
}

func never(string) bool { return false }

// mayLookOutside: tests skip where the data is absent, and the programs that run them may hand it over.
func mayLookOutside(p string) bool {
	return strings.HasSuffix(p, "_test.go") || p == "Makefile" || strings.HasPrefix(p, ".ci/")
}

// checkText reads the files users get.
func checkText(t Tree) ([]Finding, error) {
	var found []Finding
	for _, p := range t.Tracked {
		src, err := fs.ReadFile(t.FS, p)
		if err != nil {
			return nil, err
		}
		if p == "README.md" && lineCount(src) > maxReadmeLines {
			found = append(found, Finding{p, "length", fmt.Sprintf("%d lines, at most %d: move detail to doc/", lineCount(src), maxReadmeLines)})
		}
		if binary(p, src) {
			continue
		}
		for i, line := range bytes.Split(src, []byte("\n")) {
			for _, a := range absent {
				if m := a.pattern.Find(line); m != nil && !a.except(p) {
					found = append(found, Finding{fmt.Sprintf("%s:%d", p, i+1), "text", fmt.Sprintf("%q refers to %s", m, a.why)})
				}
			}
		}
	}
	return found, nil
}

// binary tells by a NUL near the start, as git does, and by the names of the sums that only the go tool reads.
func binary(p string, src []byte) bool {
	return path.Base(p) == "go.sum" || bytes.IndexByte(src[:min(len(src), 8000)], 0) >= 0
}
