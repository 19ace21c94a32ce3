package goclaw_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// The shape of the house: no type is a town square, no function a crossroads.
const (
	maxMethods  = 25
	maxLines    = 100
	maxBranches = 25
)

// shapes are the exceptions, each with its reason.
var shapes = map[string]string{
	"internal/rawjson.Tape.scan": "the loop of a parser",
	"recall/embed.main":          "a generator: a list of steps",
	"store/storetest.suite":      "a list of cases, one method each",
}

func TestShape(t *testing.T) {
	methods, seen := map[string]int{}, map[string]bool{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			name := dir + "." + fn.Name.Name
			if fn.Recv != nil {
				typ := dir + "." + receiver(fn.Recv.List[0].Type)
				methods[typ]++
				name = typ + "." + fn.Name.Name
			}
			lines := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
			branches := branches(fn.Body)
			if lines <= maxLines && branches <= maxBranches {
				continue
			}
			if seen[name] = true; shapes[name] == "" {
				t.Errorf("%s has %d lines and %d branches; at most %d and %d: split it, or give the reason in shapes", name, lines, branches, maxLines, maxBranches)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for typ, n := range methods {
		if n <= maxMethods {
			continue
		}
		if seen[typ] = true; shapes[typ] == "" {
			t.Errorf("%s has %d methods, at most %d: take it apart, or give the reason in shapes", typ, n, maxMethods)
		}
	}
	for name := range shapes {
		if !seen[name] {
			t.Errorf("%s needs no exception any more", name)
		}
	}
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// branches counts the conditions, loops and cases of a function, those of its
// closures included.
func branches(body *ast.BlockStmt) (n int) {
	ast.Inspect(body, func(node ast.Node) bool {
		switch node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.CaseClause, *ast.CommClause:
			n++
		}
		return true
	})
	return n
}
