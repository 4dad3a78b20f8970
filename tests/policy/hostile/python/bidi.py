# nacre: found analysis.hidden-text
access = "user‮ ⁦# admin⁩ ⁦"
