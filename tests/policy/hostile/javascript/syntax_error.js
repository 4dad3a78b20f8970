// nacre: found analysis.parse
function ( { = ;
