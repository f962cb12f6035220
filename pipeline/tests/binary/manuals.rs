//! Shell completions and manual pages of all commands.

use std::process::{Command, Stdio};

use super::processes::{folder, texts, warptape};

#[test]
fn bash_completes_commands_and_values() {
    let folder = folder();
    let (script, _) = texts(&warptape(folder.path(), &["completions", "bash"]), 0);
    std::fs::write(folder.path().join("completions"), script).expect("a file");
    let complete = |words: &str| {
        let asked = format!(
            "source completions; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _warptape warptape \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let bash = Command::new("bash")
            .args(["-c", &asked])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .output();
        texts(&bash.expect("bash"), 0).0
    };
    assert_eq!(complete("warptape rep"), "replay\n");
    assert_eq!(complete("warptape replay why-"), "why-not\n");
    assert_eq!(complete("warptape tail signals --output t"), "table\n");
    for shell in ["elvish", "fish", "powershell", "zsh"] {
        let (script, _) = texts(&warptape(folder.path(), &["completions", shell]), 0);
        assert!(script.contains("why-not"), "{shell}: {script}");
    }
}

#[test]
fn every_command_has_a_page() {
    let folder = folder();
    texts(&warptape(folder.path(), &["man", "--to", "man1"]), 0);
    let page = |name: &str| std::fs::read_to_string(folder.path().join("man1").join(name)).expect(name);
    assert!(page("warptape.1").contains("warptape\\-feed(1)"), "{}", page("warptape.1"));
    assert!(page("warptape-replay-why.1").contains("Example"), "{}", page("warptape-replay-why.1"));
    let taken = folder.path().join("taken");
    std::fs::write(&taken, "a file").expect("a file");
    let (_, said) = texts(&warptape(folder.path(), &["man", "--to", "taken"]), 1);
    assert!(said.contains("taken: the pages cannot be written"), "{said}");
}
