#!/bin/bash
# heddle worker --pack lambda: a zip file whose bootstrap works in an empty environment. Python's
# zipfile is the judge of the file.
. "$(dirname "$0")/program.sh"
unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_REGION
command -v python3 >/dev/null || { echo "skip: no python3 to judge the zip file"; exit 77; }
expect 2 heddle worker --pack lambda
says '-o FILE'
expect 11 heddle worker --pack lambda --bootstrap "$HEDDLE_BIN" -o fn.zip
says 'needs a loader and libraries'
echo '#!/bin/sh' > script
expect 3 heddle worker --pack lambda --bootstrap script -o fn.zip
says 'script is no executable of 64 bits'
[ ! -e fn.zip ] || failed "an executable that Lambda cannot start was packed"
[ -e "$(dirname "$(readlink -f "$HEDDLE_BIN")")/heddle-function" ] ||
	{ echo "skip: this build has no heddle-function (static libraries)"; exit 77; }
expect 0 heddle worker --pack lambda -o fn.zip --json
json_ok
expect 0 heddle worker --pack lambda -o again.zip
cmp -s fn.zip again.zip || failed "two packs of one executable differ"
python3 - <<'END' || failed "the zip file is not as it should be"
import zipfile
with zipfile.ZipFile("fn.zip") as z:
    [one] = z.infolist()
    assert z.testzip() is None
    assert one.filename == "bootstrap" and one.external_attr >> 16 == 0o100755, one
    z.extract(one, "there")
END
chmod 0755 there/bootstrap        # zipfile forgets modes
passed "one member, bootstrap, 0755, of the right checksum"

# the emulator starts it with nothing in its environment but the address, in an empty folder
cat > alone <<END
#!/bin/sh
cd $PWD/empty && exec env -i AWS_LAMBDA_RUNTIME_API="\$AWS_LAMBDA_RUNTIME_API" $PWD/there/bootstrap
END
chmod +x alone
mkdir empty
"$HEDDLE_BIN" chaos lambda --slots 2 --bootstrap ./alone -o lines > where 2> emulator &
emulator=$!
await grep -qs http where
expect 0 heddle bench functions --function=lambda --endpoint "$(cat where)" --slots 2 --count 10 \
	--reports lines --json
json_ok
same "$(number equal)" 10 "tasks with the bits of this process"
same "$(($(number accepted) + $(number here)))" 20 "each task is committed once"
[ "$(number accepted)" -gt 0 ] || failed "the bootstrap did no task"
kill "$emulator"
wait "$emulator"
same $? 0 "exit of chaos lambda"
passed "its bootstrap computes tasks of the emulator in an empty environment"
