#!/bin/bash
# heddle completion: scripts that their shells read, and that name every verb.
. "$(dirname "$0")/program.sh"
for shell in bash zsh fish; do
	expect 0 heddle completion $shell
	cp out $shell.complete
	for verb in run resume eval predict ckpt data model config doctor bench demo; do
		grep -qw -- "$verb" $shell.complete || failed "$shell: no $verb"
	done
done
expect 0 bash -n bash.complete
for shell in zsh fish; do
	command -v $shell >/dev/null || { echo "skip: no $shell here"; continue; }
	expect 0 $shell -n $shell.complete
done
passed "each shell's script is sound and has the verbs"

complete_words()        # words typed so far -> what is offered
{
	bash -c '. ./bash.complete; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _heddle
		echo "${COMPREPLY[@]}"' - "$@"
}
same "$(complete_words heddle resu)" resume "a verb"
same "$(complete_words heddle ckpt di)" "digest diff" "subverbs"
same "$(complete_words heddle run --devi)" --devices "an option"
expect 2 heddle completion tcsh
says 'bash, zsh and fish'
passed "bash completes verbs, subverbs and options"
